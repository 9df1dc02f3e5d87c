#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/values.h"

namespace attnlab {

// A tensor written where a file would stand.
template <class T>
TensorSource given(const Shape& shape, std::initializer_list<T> values) {
  return {.path = {}, .values = AnyTensor(Tensor<T>(shape, values))};
}

// A tensor of one repeated value.
inline TensorSource filled(const Shape& shape, double value) {
  return {.path = {}, .values = AnyTensor(Tensor<double>(shape, value))};
}

inline std::vector<double> values_of(const std::optional<AnyTensor>& tensor) {
  std::vector<double> values;
  for (Index i = 0; i < tensor.value().size(); ++i) values.push_back(tensor->at(i));
  return values;
}

// What the call says when it refuses, "" when it does not.
template <class F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

inline bool mentions(const std::vector<std::string>& notes, const std::string& text) {
  for (const std::string& note : notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace attnlab
