#include "attnlab/core/tensor.h"

#include <limits>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

std::string join(std::span<const Index> lengths) {
  std::string text = "[";
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(lengths[i]);
  }
  return text + "]";
}

}  // namespace

Shape::Shape(std::span<const Index> lengths) {
  if (lengths.size() > kMaxRank) {
    throw InputError("", "", join(lengths), "need at most 4 axes");
  }
  Index product = 1;
  bool empty = false;
  for (const Index length : lengths) {
    if (length < 0) throw InputError("", "", join(lengths), "need lengths of 0 or more");
    empty = empty || length == 0;
    // The product of the other axes must fit even when one is 0, so that strides do.
    if (length > 0 && product > std::numeric_limits<Index>::max() / length) {
      throw InputError("", "", join(lengths), "the number of elements overflows");
    }
    product *= std::max<Index>(length, 1);
    lengths_[static_cast<std::size_t>(rank_++)] = length;
  }
}

Index Shape::size() const {
  Index product = 1;
  for (const Index length : axes()) product *= length;
  return product;
}

Index Shape::matrices() const {
  Index product = 1;
  for (int axis = 0; axis < rank_ - 2; ++axis) product *= (*this)[axis];
  return product;
}

std::string Shape::str() const { return join(axes()); }

std::optional<std::uint64_t> checked_bytes(std::span<const std::uint64_t> lengths,
                                           std::uint64_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  for (const std::uint64_t length : lengths) {
    if (length != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / length) {
      return std::nullopt;
    }
    bytes *= length;
  }
  return bytes;
}

AnyTensor AnyTensor::cast(DType dtype) const& {
  return visit_dtype(dtype,
                     [&](auto tag) -> AnyTensor { return cast<typename decltype(tag)::type>(); });
}

double AnyTensor::at(Index i) const {
  return visit([i](const auto& t) { return convert_element<double>(t[i]); });
}

}  // namespace attnlab
