#pragma once

#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/tensor.h"

namespace attnlab {

// The dtype of a computation as the user chooses it.
enum class Precision { automatic, float16, bfloat16, float32, float64 };
template <>
inline constexpr std::array<std::string_view, 5> kChoiceNames<Precision> = {
    "auto", "float16", "bfloat16", "float32", "float64"};

// The dtype that `precision` stands for. auto is the widest of `inputs`: integers and text count as
// float64, and float16 beside bfloat16 is float32, the narrowest that holds both.
DType resolve_precision(Precision precision, const std::vector<DType>& inputs);

// `tensor` rounded to `dtype`: what a computation in it starts from. Values that only this makes
// infinite are said in `notes`, of `name`.
AnyTensor rounded_to(DType dtype, AnyTensor tensor, std::string_view name,
                     std::vector<std::string>& notes);

// Calls f(std::type_identity<T>{}) with the type that results of `dtype` are computed in: float64
// in double, all others in float. 16-bit inputs are rounded first, results once, at the end.
template <class F>
decltype(auto) visit_compute_type(DType dtype, F&& f) {
  if (dtype == DType::float64) return f(std::type_identity<double>{});
  return f(std::type_identity<float>{});
}

}  // namespace attnlab
