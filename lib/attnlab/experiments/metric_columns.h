#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

// A text as a template argument.
template <std::size_t N>
struct FixedText {
  std::array<char, N> characters{};

  constexpr FixedText(const char (&text)[N]) {  // NOLINT(google-explicit-constructor,*-c-arrays)
    std::copy_n(text, N, characters.begin());
  }
};

namespace detail {
// The texts one after the other, kept for as long as the program runs.
template <FixedText... Texts>
struct JoinedName {
  static constexpr std::size_t kLength = (0 + ... + (Texts.characters.size() - 1));
  static constexpr auto kText = [] {
    std::array<char, kLength> text{};
    auto* end = text.data();
    ((end = std::copy_n(Texts.characters.data(), Texts.characters.size() - 1, end)), ...);
    return text;
  }();
};
}  // namespace detail

// "max_p", "_ci_low" -> "max_p_ci_low"
template <FixedText... Texts>
inline constexpr std::string_view kJoined{detail::JoinedName<Texts...>::kText.data(),
                                          detail::JoinedName<Texts...>::kLength};

// The columns of a metric called Name: its mean with interval, theory, and quantiles over the rows.
template <FixedText Name, FixedText Help>
struct MetricColumns {
  double mean = 0;
  std::optional<double> ci_low, ci_high, theory;
  std::vector<double> quantiles;

  static constexpr auto fields() {
    using C = MetricColumns;
    return std::tuple(field(kJoined<Name>, &C::mean, kJoined<Help>),
                      field(kJoined<Name, "_ci_low">, &C::ci_low, "interval of the mean, from"),
                      field(kJoined<Name, "_ci_high">, &C::ci_high, "to"),
                      field(kJoined<Name, "_theory">, &C::theory,
                            "exact mean of normal logits; beside given weights, of such as have "
                            "each row's own variance"),
                      field(kJoined<Name, "_quantiles">, &C::quantiles,
                            "over the rows, for each of --quantiles (Hyndman and Fan, type 7)"));
  }
};

}  // namespace attnlab
