#include "attnlab/attention/scaled_dot_product_backward.h"

#include <algorithm>
#include <string_view>

#include "attnlab/attention/earlier_result.h"
#include "attnlab/attention/kernel/backward_full.h"
#include "attnlab/attention/kernel/backward_tiled.h"
#include "attnlab/attention/kernel/worthwhile_threads.h"
#include "attnlab/attention/requirements.h"
#include "attnlab/attention/room.h"
#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"

namespace attnlab {
namespace {

// Room for the gradients asked for, all 0.
template <class T>
void make_room(const Shape& q, const Shape& k, const Shape& v, const Request& want,
               AttentionGradients<T>& gradients) {
  const auto make = [&](std::string_view name, const Shape& shape,
                        std::optional<Tensor<T>>& gradient) {
    if (!want.has(name)) {
      gradient.reset();
    } else if (gradient && has_room(*gradient, shape.axes())) {
      std::ranges::fill(gradient->values(), T(0));
    } else {
      gradient.reset();
      require_memory(static_cast<std::uint64_t>(shape.size()) * sizeof(T), name);
      gradient = Tensor<T>(shape);
    }
  };
  make("grad_q", q, gradients.grad_q);
  make("grad_k", k, gradients.grad_k);
  make("grad_v", v, gradients.grad_v);
}

}  // namespace

template <class T>
void scaled_dot_product_backward(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                 const Tensor<T>& grad_output, const Mask& mask,
                                 const AttentionSettings& settings, const Request& want,
                                 AttentionGradients<T>& gradients) {
  require_attention<T>(q.shape(), k.shape(), v.shape(), mask, settings, {});
  const Shape output{q.shape()[0], q.shape()[1], q.shape()[2], v.shape()[3]};
  if (grad_output.shape() != output) {
    throw InputError("", "grad_output", grad_output.shape().str(),
                     "need that of the output, [batch, heads, n, d_v] = " + output.str());
  }
  make_room(q.shape(), k.shape(), v.shape(), want, gradients);
  if (!gradients.grad_q && !gradients.grad_k && !gradients.grad_v) return;
  const Values<T> queries(q), keys(k), values(v), cotangent(grad_output);
  const BackwardCall<T> call{queries, keys, values, cotangent, mask, settings};
  const double work = static_cast<double>(q.size()) * static_cast<double>(mask.keys());
  const Index threads = worthwhile_threads(work, settings.threads);
  switch (settings.kernel) {
    case Kernel::automatic:
    case Kernel::tiled:
      backward_tiled(call, threads, gradients);
      break;
    case Kernel::full:
      backward_full(call, threads, gradients);
      break;
  }
}

template <class T>
AttentionGradients<T> scaled_dot_product_backward(const Tensor<T>& q, const Tensor<T>& k,
                                                  const Tensor<T>& v, const Tensor<T>& grad_output,
                                                  const Mask& mask,
                                                  const AttentionSettings& settings,
                                                  const Request& want) {
  AttentionGradients<T> gradients;
  scaled_dot_product_backward(q, k, v, grad_output, mask, settings, want, gradients);
  return gradients;
}

template AttentionGradients<float> scaled_dot_product_backward(
    const Tensor<float>&, const Tensor<float>&, const Tensor<float>&, const Tensor<float>&,
    const Mask&, const AttentionSettings&, const Request&);
template AttentionGradients<double> scaled_dot_product_backward(
    const Tensor<double>&, const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
    const Mask&, const AttentionSettings&, const Request&);
template void scaled_dot_product_backward(const Tensor<float>&, const Tensor<float>&,
                                          const Tensor<float>&, const Tensor<float>&, const Mask&,
                                          const AttentionSettings&, const Request&,
                                          AttentionGradients<float>&);
template void scaled_dot_product_backward(const Tensor<double>&, const Tensor<double>&,
                                          const Tensor<double>&, const Tensor<double>&, const Mask&,
                                          const AttentionSettings&, const Request&,
                                          AttentionGradients<double>&);

}  // namespace attnlab
