#include "attnlab/attention/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

// a + b, or the bound of Index that it lies beyond.
Index saturating_add(Index a, Index b) {
  using Limits = std::numeric_limits<Index>;
  if (b > 0 && a > Limits::max() - b) return Limits::max();
  if (b < 0 && a < Limits::min() - b) return Limits::min();
  return a + b;
}

// Entry b of a list that holds one value a batch entry, or one for all.
Index of_batch(const std::vector<Index>& values, Index b) {
  return values.size() == 1 ? values.front() : values[static_cast<std::size_t>(b)];
}

void check_count(std::size_t count, Index batch, std::string_view field) {
  if (count == 1 || count == static_cast<std::size_t>(batch)) return;
  throw InputError("", field, std::to_string(count) + (count == 1 ? " value" : " values"),
                   "need 1, or one for each of the " + std::to_string(batch) + " batch entries");
}

// Where row (b, h, i) starts in a tensor broadcast to [batch, heads, n, its last axis].
Index row_start(const Shape& shape, Index b, Index h, Index i) {
  const std::array<Index, 3> position{b, h, i};
  Index start = 0;
  Index stride = shape.rank() > 0 ? shape[-1] : 1;
  for (int axis = 2; axis <= shape.rank(); ++axis) {
    const Index length = shape[-axis];
    if (length > 1) start += position[static_cast<std::size_t>(4 - axis)] * stride;
    stride *= length;
  }
  return start;
}

// Calls f(j, value) for each key of a row; value is null where the last axis ends before the key.
template <class E, class F>
void for_each_key(const Tensor<E>& mask, Index b, Index h, Index i, KeyRange keys, F&& f) {
  const Index length = mask.shape().rank() > 0 ? mask.shape()[-1] : 1;
  const E* row = mask.data() + row_start(mask.shape(), b, h, i);
  if (length == 1) {
    for (Index j = keys.first; j < keys.last; ++j) f(j, row);
    return;
  }
  const Index end = std::clamp(length, keys.first, std::max(keys.first, keys.last));
  for (Index j = keys.first; j < end; ++j) f(j, row + j);
  for (Index j = end; j < keys.last; ++j) f(j, static_cast<const E*>(nullptr));
}

// A finite bias stays finite: -1e300 is not a mask in float32 either.
template <class T, class E>
T bias_as(E value) {
  if constexpr (std::is_same_v<T, E>) {
    return value;
  } else {
    const double wide = convert_element<double>(value);
    if (!std::isfinite(wide)) return static_cast<T>(wide);
    constexpr double kLargest = std::numeric_limits<T>::max();
    return static_cast<T>(std::clamp(wide, -kLargest, kLargest));
  }
}

}  // namespace

Mask::Mask(Index batch, Index heads, Index queries, Index keys)
    : batch_(batch), heads_(heads), queries_(queries), keys_(keys) {}

void Mask::set_offset(Index offset) { offsets_ = {offset}; }

void Mask::set_offsets(std::vector<Index> offsets) {
  check_count(offsets.size(), batch_, "offset");
  offsets_ = std::move(offsets);
}

void Mask::set_causal() { causal_ = true; }

void Mask::set_window(Index left, Index right) {
  const auto check = [](std::string_view field, Index width) {
    if (width >= -1) return;
    throw InputError("", field, std::to_string(width), "need a number of keys, or -1 for no bound");
  };
  check("window_left", left);
  check("window_right", right);
  left_ = left;
  right_ = right;
}

void Mask::set_key_lengths(std::vector<Index> lengths) {
  check_count(lengths.size(), batch_, "key_lengths");
  for (const Index length : lengths) {
    if (length >= 0 && length <= keys_) continue;
    throw InputError("", "key_lengths", std::to_string(length),
                     "need lengths from 0 to the " + std::to_string(keys_) + " keys there are");
  }
  lengths_ = std::move(lengths);
}

void Mask::set_boolean(Tensor<bool> may_attend) {
  check_broadcast(may_attend.shape());
  boolean_ = std::move(may_attend);
}

void Mask::set_additive(AnyTensor bias) {
  check_broadcast(bias.shape());
  additive_ = std::move(bias);
}

void Mask::set_alibi(std::vector<double> slopes) {
  if (slopes.size() != static_cast<std::size_t>(heads_)) {
    throw InputError("", "alibi", fmt::format("{} slopes", slopes.size()),
                     fmt::format("need one for each of the {} heads", heads_));
  }
  for (const double slope : slopes) {
    if (slope >= 0 && slope <= 1e18) continue;
    throw InputError("", "alibi", fmt::format("{}", slope), "need slopes from 0 to 1e18");
  }
  slopes_ = std::move(slopes);
}

void Mask::check_broadcast(const Shape& shape) const {
  const Shape full{batch_, heads_, queries_, keys_};
  bool fits = true;
  for (int axis = 1; axis <= shape.rank(); ++axis) {
    const Index length = shape[-axis];
    const bool padded = axis == 1 && length >= 2 && length < keys_;
    fits = fits && (length == 1 || length == full[-axis] || padded);
  }
  if (fits) return;
  throw InputError("", "mask", shape.str(),
                   "need a shape that broadcasts to [batch, heads, n, m] = " + full.str());
}

Mask Mask::with_open_keys(Index count) const {
  Mask mask = *this;
  mask.open_ += count;
  return mask;
}

KeyRange Mask::key_range(Index b, Index i) const {
  const KeyRange masked = masked_range(b, i);
  if (open_ == 0) return masked;
  return {0, open_ + (masked.empty() ? 0 : masked.last)};
}

KeyRange Mask::masked_range(Index b, Index i) const {
  const Index offset = of_batch(offsets_, b);
  Index first = 0;
  Index last = lengths_.empty() ? keys_ : of_batch(lengths_, b);
  // Offset and width are added before i, so that an overflow is always beyond all keys.
  if (causal_) last = std::min(last, saturating_add(saturating_add(offset, 1), i));
  if (right_ >= 0) {
    last = std::min(last, saturating_add(saturating_add(offset, right_), saturating_add(i, 1)));
  }
  if (left_ >= 0) first = std::max(first, saturating_add(saturating_add(offset, -left_), i));
  first = std::min(first, keys_);
  return {first, std::max(first, last)};
}

bool Mask::may_attend(Index b, Index h, Index i, Index j) const {
  const KeyRange keys = key_range(b, i);
  if (j < keys.first || j >= keys.last) return false;
  std::uint8_t seen = 1;
  double unused = 0;
  read_row<double>(b, h, i, {j, j + 1}, {&seen, 1}, {&unused, 1});
  return seen != 0;
}

template <class T>
T Mask::bias(Index b, Index h, Index i, Index j) const {
  std::uint8_t unused = 1;
  T bias = 0;
  read_row<T>(b, h, i, {j, j + 1}, {&unused, 1}, {&bias, 1});
  if (has_alibi() && std::isfinite(bias)) {
    add_alibi<T>(b, h, i, {j, j + 1}, {&bias, 1});
    bias = std::max(bias, std::numeric_limits<T>::lowest());
  }
  return bias;
}

Index Mask::position(Index b, Index i) const {
  return saturating_add(saturating_add(of_batch(offsets_, b), i), open_);
}

template <class T>
void Mask::add_alibi(Index b, Index h, Index i, KeyRange keys, std::span<T> scores) const {
  // In double, where the distance from either bound of Index is a number like others.
  const auto self = static_cast<double>(position(b, i));
  const double slope = alibi_slope(h);
  for (Index j = std::max(keys.first, open_); j < keys.last; ++j) {
    scores[static_cast<std::size_t>(j - keys.first)] -=
        static_cast<T>(slope * std::abs(self - static_cast<double>(j)));
  }
}

template <class T>
void Mask::read_row(Index b, Index h, Index i, KeyRange keys, std::span<std::uint8_t> seen,
                    std::span<T> bias) const {
  std::fill(seen.begin(), seen.end(), std::uint8_t{1});
  const KeyRange masked{std::max<Index>(keys.first - open_, 0),
                        std::max<Index>(keys.last - open_, 0)};
  const auto at = [&](Index j) { return static_cast<std::size_t>(open_ + j - keys.first); };
  if (boolean_) {
    for_each_key(*boolean_, b, h, i, masked, [&](Index j, const bool* value) {
      seen[at(j)] = static_cast<std::uint8_t>(value != nullptr && *value);
    });
  }
  if (additive_) {
    constexpr T kHidden = -std::numeric_limits<T>::infinity();
    std::fill_n(bias.begin(), std::min(bias.size(), at(masked.first)), T(0));
    additive_->visit([&](const auto& mask) {
      for_each_key(mask, b, h, i, masked, [&](Index j, const auto* value) {
        bias[at(j)] = value == nullptr ? kHidden : bias_as<T>(*value);
        if (bias[at(j)] == kHidden) seen[at(j)] = 0;
      });
    });
  }
  if (open_ > 0 && left_ >= 0) {
    const Index end = std::min(masked.last, masked_range(b, i).first);
    for (Index j = masked.first; j < end; ++j) seen[at(j)] = 0;
  }
}

template float Mask::bias<float>(Index, Index, Index, Index) const;
template double Mask::bias<double>(Index, Index, Index, Index) const;
template void Mask::add_alibi<float>(Index, Index, Index, KeyRange, std::span<float>) const;
template void Mask::add_alibi<double>(Index, Index, Index, KeyRange, std::span<double>) const;
template void Mask::read_row<float>(Index, Index, Index, KeyRange, std::span<std::uint8_t>,
                                    std::span<float>) const;
template void Mask::read_row<double>(Index, Index, Index, KeyRange, std::span<std::uint8_t>,
                                     std::span<double>) const;

}  // namespace attnlab
