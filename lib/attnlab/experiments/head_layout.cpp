#include "attnlab/experiments/head_layout.h"

#include <fmt/format.h>

#include "attnlab/attention/multi_head.h"
#include "attnlab/core/error.h"

namespace attnlab {
namespace {

// The last `rank` axes; those before them are 1.
Shape last_axes(const Shape& shape, int rank) {
  return Shape(shape.axes().last(static_cast<std::size_t>(rank)));
}

template <class T>
Tensor<T> last_axes(Tensor<T> tensor, int rank) {
  const Shape shape = last_axes(tensor.shape(), rank);
  return std::move(tensor).reshaped(shape);
}

}  // namespace

template <class T>
Tensor<T> HeadLayout::restore_output(Tensor<T> output) const {
  return packed ? restore_rows(merge_heads(output)) : last_axes(std::move(output), rank);
}

template <class T>
Tensor<T> HeadLayout::split_output(Tensor<T> tensor, const Shape& output,
                                   std::string_view name) const {
  const Shape merged{output[0], output[2], output[1] * output[3]};
  const Shape form = packed ? last_axes(merged, rank) : last_axes(output, rank);
  if (tensor.shape() != form) {
    throw InputError("", name, tensor.shape().str(), "need the shape of the output, " + form.str());
  }
  if (!packed) return std::move(tensor).reshaped(output);
  return split_heads(std::move(tensor).reshaped(merged), output[1]);
}

template <class T>
Tensor<T> HeadLayout::restore_rows(Tensor<T> rows) const {
  return last_axes(std::move(rows), rank);
}

template <class T>
Tensor<T> HeadLayout::restore_scores(Tensor<T> scores) const {
  return last_axes(std::move(scores), packed ? rank + 1 : rank);
}

template <class T>
Tensor<T> HeadLayout::restore_present(Tensor<T> present) const {
  return packed ? std::move(present) : last_axes(std::move(present), rank);
}

template <class T>
Tensor<T> to_heads(Tensor<T> tensor, std::optional<Index> heads, std::string_view name,
                   std::string_view heads_option) {
  const Shape shape = tensor.shape();
  if (shape.rank() < 2) {
    throw InputError("", name, shape.str(), "need a matrix [n, d] or a stack of them, rank 2 to 4");
  }
  if (shape.rank() == 4) {
    if (heads && shape[1] != *heads) {
      throw InputError("", heads_option, std::to_string(*heads),
                       fmt::format("{} {} has {} heads", name, shape.str(), shape[1]));
    }
    return tensor;
  }
  if (!heads) {
    const Index stack = shape.rank() == 3 ? shape[0] : 1;
    return std::move(tensor).reshaped({1, stack, shape[-2], shape[-1]});
  }
  if (shape[-1] % *heads != 0) {
    throw InputError(
        "", name, shape.str(),
        fmt::format("the last axis, {}, must be a multiple of the {} heads", shape[-1], *heads));
  }
  const Index batch = shape.rank() == 3 ? shape[0] : 1;
  return split_heads(std::move(tensor).reshaped({batch, shape[-2], shape[-1]}), *heads);
}

template Tensor<float> HeadLayout::restore_output(Tensor<float>) const;
template Tensor<double> HeadLayout::restore_output(Tensor<double>) const;
template Tensor<double> HeadLayout::split_output(Tensor<double>, const Shape&,
                                                 std::string_view) const;
template Tensor<float> HeadLayout::split_output(Tensor<float>, const Shape&,
                                                std::string_view) const;
template Tensor<float> HeadLayout::restore_rows(Tensor<float>) const;
template Tensor<double> HeadLayout::restore_rows(Tensor<double>) const;
template Tensor<float> HeadLayout::restore_scores(Tensor<float>) const;
template Tensor<double> HeadLayout::restore_scores(Tensor<double>) const;
template Tensor<float> HeadLayout::restore_present(Tensor<float>) const;
template Tensor<double> HeadLayout::restore_present(Tensor<double>) const;
template Tensor<float> to_heads(Tensor<float>, std::optional<Index>, std::string_view,
                                std::string_view);
template Tensor<double> to_heads(Tensor<double>, std::optional<Index>, std::string_view,
                                 std::string_view);

}  // namespace attnlab
