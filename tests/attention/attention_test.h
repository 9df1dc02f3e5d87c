#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/attention/multi_head.h"
#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/core/error.h"
#include "catch.h"

namespace attnlab::test {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline const Request kAllMatrices = {"raw_scores", "scores", "capped_scores", "masked_scores",
                                     "weights"};

// Numbers in [-1, 1) without pattern, the same in every run (xorshift64*, apart from the library).
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed = 1) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  double next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<double>((state_ * 0x2545F4914F6CDD1Du) >> 11) * 0x1p-52 - 1;
  }
  bool flip() { return next() < 0; }
  template <class T>
  Tensor<T> tensor(const Shape& shape, double size = 1) {
    Tensor<T> t(shape);
    for (T& value : t.values()) value = static_cast<T>(size * next());
    return t;
  }

 private:
  std::uint64_t state_;
};

// The mask that hides nothing.
template <class T>
Mask no_mask(const Tensor<T>& q, const Tensor<T>& k) {
  return Mask(q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]);
}

template <class T>
std::vector<double> doubles(const Tensor<T>& t) {
  return {t.data(), t.data() + t.size()};
}

// The elements as doubles equal `expected` within `tolerance`; NaN and infinities as they are.
template <class T>
bool close(const Tensor<T>& t, const std::vector<double>& expected, double tolerance) {
  if (static_cast<std::size_t>(t.size()) != expected.size()) return false;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double got = static_cast<double>(t.data()[i]);
    if (std::isnan(got) && std::isnan(expected[i])) continue;
    if (got == expected[i]) continue;
    if (!(std::abs(got - expected[i]) <= tolerance)) return false;
  }
  return true;
}

template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// What the InputError of `act` says, "" when there is none.
template <class F>
std::string error_of(F&& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// `text` holds each of `parts`.
inline bool says(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) return false;
  }
  return !text.empty();
}

}  // namespace attnlab::test
