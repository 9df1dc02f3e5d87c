#include "attnlab/experiments/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/index_text.h"
#include "attnlab/experiments/rounding.h"

namespace attnlab {
namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// How far apart two integers are, exactly where 64 bits hold it.
template <class A, class B>
double integer_distance(A a, B b) {
  if (std::cmp_less(a, b)) return integer_distance(b, a);
  // Unsigned arithmetic wraps around to the right difference.
  const std::uint64_t distance = static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
  const bool too_far =
      std::cmp_less(b, 0) && std::cmp_greater(a, 0) && distance < static_cast<std::uint64_t>(a);
  return too_far ? static_cast<double>(a) - static_cast<double>(b) : static_cast<double>(distance);
}

// 2^-e, so that numbers up to `largest` times it are about 1: their squares neither overflow nor
// vanish, and no digit is lost.
double unit_of(double largest) {
  if (largest == 0) return 1;
  return std::ldexp(1.0, -std::clamp(std::ilogb(largest), -1000, 1000));
}

// The exponent E of 10^E <= error < 10^(E+1).
int decade_of(double error) { return static_cast<int>(std::floor(std::log10(error))); }

// How many errors are in each decade of float64.
class Decades {
 public:
  void add(double error) { ++counts_[place(decade_of(error))]; }
  // From the first that has any to the last.
  void write(CompareRow& row) const {
    const auto some = [](Index count) { return count > 0; };
    const auto first = std::find_if(counts_.begin(), counts_.end(), some);
    if (first == counts_.end()) return;
    const auto last = std::find_if(counts_.rbegin(), counts_.rend(), some).base();
    row.in_decade.assign(first, last);
    for (auto count = first; count != last; ++count) {
      row.decades.push_back(count - counts_.begin() + kLowest);
    }
  }

 private:
  static constexpr int kLowest = -324, kHighest = 308;

  static std::size_t place(int decade) {
    return static_cast<std::size_t>(std::clamp(decade, kLowest, kHighest) - kLowest);
  }

  std::array<Index, kHighest - kLowest + 1> counts_{};
};

// Two entries of one name and shape, element by element.
class Elements {
 public:
  Elements(const ResultEntry& a, const ResultEntry& b, DType dtype, const Tolerance& tolerance,
           const std::function<void(Index)>& apart)
      : a_(a),
        b_(b),
        dtype_(dtype),
        apart_(apart),
        integers_(!is_floating(a.dtype()) && !is_floating(b.dtype())) {
    row_.name = a_.name;
    row_.shape = a_.tensor.shape().str();
    row_.dtype_a = dtype_of(a_);
    row_.dtype_b = dtype_of(b_);
    row_.atol = tolerance.atol;
    row_.rtol = tolerance.rtol;
  }

  Comparison compare() && {
    for (Index i = 0; i < a_.tensor.size(); ++i) compare_element(i);
    row_.equal = row_.apart == 0;
    decades_.write(row_);
    if (count_ > 0) describe_all();
    return {std::move(row_), std::move(text_difference_)};
  }

 private:
  static const std::string& text(const ResultEntry& entry, Index i) {
    static const std::string kNumber;
    return entry.texts.empty() ? kNumber : entry.texts[static_cast<std::size_t>(i)];
  }
  static bool all_text(const ResultEntry& entry) {
    return !entry.texts.empty() && std::none_of(entry.texts.begin(), entry.texts.end(),
                                                [](const auto& text) { return text.empty(); });
  }
  static std::string dtype_of(const ResultEntry& entry) {
    return all_text(entry) ? "text" : std::string(dtype_name(entry.dtype()));
  }

  std::string where(Index i) const {
    return a_.places.empty() ? index_text(a_.tensor.shape(), i)
                             : a_.places[static_cast<std::size_t>(i)];
  }
  std::optional<double> number(const ResultEntry& entry, Index i) const {
    if (!text(entry, i).empty()) return std::nullopt;
    return entry.tensor.at(i);
  }
  void point_at(Index i) {
    row_.where = where(i);
    row_.a = number(a_, i);
    row_.b = number(b_, i);
  }

  void add_apart(Index i) {
    if (row_.apart++ == 0) row_.first_apart = where(i);
    if (apart_) apart_(i);
  }
  // Nothing is further apart than what has no distance.
  void add_without_distance(Index i) {
    add_apart(i);
    if (!std::exchange(without_distance_, true)) point_at(i);
  }

  // std::cmp_less knows no booleans.
  template <class T>
  static auto widened(T value) {
    if constexpr (std::is_unsigned_v<T>) {
      return static_cast<std::uint64_t>(value);
    } else {
      return static_cast<std::int64_t>(value);
    }
  }

  double distance(Index i, double x, double y) const {
    if (!integers_) return std::abs(x - y);
    return a_.tensor.visit([&](const auto& a) {
      return b_.tensor.visit([&](const auto& b) -> double {
        using A = std::decay_t<decltype(a[0])>;
        using B = std::decay_t<decltype(b[0])>;
        if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
          return integer_distance(widened(a[i]), widened(b[i]));
        } else {
          return 0;
        }
      });
    });
  }

  void compare_element(Index i) {
    const std::string &text_a = text(a_, i), &text_b = text(b_, i);
    if (!text_a.empty() || !text_b.empty()) {
      if (text_a != text_b) add_text(i);
      return;
    }
    const double x = a_.tensor.at(i), y = b_.tensor.at(i), error = distance(i, x, y);
    if (!std::isfinite(error)) {
      if (same(x, y)) {
        ++row_.exact;
      } else {
        add_without_distance(i);
      }
      return;
    }
    if (error > row_.atol + row_.rtol * std::abs(y)) add_apart(i);
    add_distance(i, x, y, error);
  }

  void add_distance(Index i, double x, double y, double error) {
    if (error == 0) {
      ++row_.exact;
    } else {
      decades_.add(error);
    }
    if (!row_.max_abs_error || error > *row_.max_abs_error) {
      row_.max_abs_error = error;
      if (!without_distance_) point_at(i);
    }
    if (!integers_) {
      row_.max_ulp = std::max(row_.max_ulp.value_or(0), ulps_between(x, y, dtype_));
    }
    if (y != 0) row_.max_rel_error = std::max(row_.max_rel_error.value_or(0), error / std::abs(y));
    largest_a_ = std::max(largest_a_, std::abs(x));
    largest_b_ = std::max(largest_b_, std::abs(y));
    ++count_;
  }

  void add_text(Index i) {
    const auto shown = [&](const ResultEntry& entry) {
      const std::string& instead = text(entry, i);
      return instead.empty() ? fmt::format("{}", entry.tensor.at(i)) : printable(instead, 60);
    };
    if (text_difference_.empty()) {
      text_difference_ =
          fmt::format("{}{}: a has {}, b has {}", a_.name,
                      a_.tensor.shape().rank() == 0 ? "" : " " + where(i), shown(a_), shown(b_));
    }
    add_without_distance(i);
  }

  template <class F>
  void for_each_pair(const F& work) const {
    for (Index i = 0; i < a_.tensor.size(); ++i) {
      if (!text(a_, i).empty() || !text(b_, i).empty()) continue;
      const double x = a_.tensor.at(i), y = b_.tensor.at(i), error = distance(i, x, y);
      if (std::isfinite(error)) work(x, y, error);
    }
  }

  void describe_all() {
    const double unit_a = unit_of(largest_a_), unit_b = unit_of(largest_b_);
    const double unit_error = unit_of(*row_.max_abs_error);
    double mean_a = 0, mean_b = 0, error2 = 0, b2 = 0;
    for_each_pair([&](double x, double y, double error) {
      mean_a += x * unit_a;
      mean_b += y * unit_b;
      error2 += (error * unit_error) * (error * unit_error);
      b2 += (y * unit_b) * (y * unit_b);
    });
    if (b2 > 0) row_.relative_norm = std::sqrt(error2 / b2) * (unit_b / unit_error);
    mean_a /= static_cast<double>(count_);
    mean_b /= static_cast<double>(count_);
    double aa = 0, bb = 0, ab = 0;
    for_each_pair([&](double x, double y, double /*error*/) {
      const double u = x * unit_a - mean_a, v = y * unit_b - mean_b;
      aa += u * u;
      bb += v * v;
      ab += u * v;
    });
    if (!(aa > 0) || !(bb > 0)) return;
    row_.correlation = std::clamp(ab / std::sqrt(aa) / std::sqrt(bb), -1.0, 1.0);
  }

  const ResultEntry& a_;
  const ResultEntry& b_;
  DType dtype_;  // that units in the last place are of
  const std::function<void(Index)>& apart_;
  bool integers_;  // on both sides
  CompareRow row_;
  Decades decades_;
  bool without_distance_ = false;
  std::string text_difference_;
  Index count_ = 0;  // of pairs with a distance
  double largest_a_ = 0, largest_b_ = 0;
};

}  // namespace

double default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 1e-12;
    case DType::float32:
      return 1e-6;
    case DType::float16:
      return 1e-3;
    case DType::bfloat16:
      return 1e-2;
    default:
      return 0;
  }
}

Comparison compare_entries(const ResultEntry& got, const ResultEntry& reference, DType dtype,
                           const Tolerance& tolerance, const std::function<void(Index)>& apart) {
  return Elements(got, reference, dtype, tolerance, apart).compare();
}

}  // namespace attnlab
