#include "attnlab/experiments/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/index_text.h"
#include "attnlab/io/result_file.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

// What rounding alone may cost in results of a dtype, with room for another order of summation.
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

// Two entries of one name and shape, element by element.
class Comparison {
 public:
  Comparison(const ResultEntry& a, const ResultEntry& b) : a_(a), b_(b) {}

  CompareRow row(const CompareOptions& options) {
    row_.name = a_.name;
    row_.shape = a_.tensor.shape().str();
    row_.dtype_a = dtype_of(a_);
    row_.dtype_b = dtype_of(b_);
    const double tolerance =
        std::max(default_tolerance(a_.tensor.dtype()), default_tolerance(b_.tensor.dtype()));
    row_.atol = options.atol.value_or(tolerance);
    row_.rtol = options.rtol.value_or(tolerance);
    for (Index i = 0; i < a_.tensor.size(); ++i) compare_element(i);
    row_.equal = row_.apart == 0;
    if (count_ > 0) describe_all();
    return std::move(row_);
  }

  // "a has null, b has 3" of the first element that is no number and differs; "" without one.
  const std::string& text_difference() const { return text_difference_; }

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
    return all_text(entry) ? "text" : std::string(dtype_name(entry.tensor.dtype()));
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

  // Nothing is further apart than what has no distance.
  void add_without_distance(Index i) {
    ++row_.apart;
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
    const bool integers = !is_floating(a_.tensor.dtype()) && !is_floating(b_.tensor.dtype());
    if (!integers) return std::abs(x - y);
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
      if (!same(x, y)) add_without_distance(i);
      return;
    }
    if (error > row_.atol + row_.rtol * std::abs(y)) ++row_.apart;
    if (!row_.max_abs_error || error > *row_.max_abs_error) {
      row_.max_abs_error = error;
      if (!without_distance_) point_at(i);
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
  CompareRow row_;
  bool without_distance_ = false;
  std::string text_difference_;
  Index count_ = 0;  // of pairs with a distance
  double largest_a_ = 0, largest_b_ = 0;
};

std::string file_of(const TensorSource& source, std::string_view name) {
  return source.values ? std::string(name) : source.path;
}

void compare_entries(const ResultEntry& a, const ResultEntry& b, const CompareOptions& options,
                     CompareResult& result) {
  const bool lists = !a.places.empty() && !b.places.empty() && a.places != b.places &&
                     a.tensor.shape() == b.tensor.shape();
  if (lists || a.tensor.shape() != b.tensor.shape()) {
    throw InputError(
        file_of(options.a, "a"), a.name, a.tensor.shape().str(),
        lists ? fmt::format("its lists have other lengths in {}", file_of(options.b, "b"))
              : fmt::format("{} has {}: shapes must agree", file_of(options.b, "b"),
                            b.tensor.shape().str()));
  }
  Comparison comparison(a, b);
  result.rows.push_back(comparison.row(options));
  if (!comparison.text_difference().empty()) result.notes.push_back(comparison.text_difference());
}

// Of what only one side has, every element is apart.
void add_one_sided(const ResultEntry& entry, std::string_view side, CompareResult& result) {
  CompareRow row;
  row.name = entry.name;
  row.shape = entry.tensor.shape().str();
  (side == "a" ? row.dtype_a : row.dtype_b) = dtype_name(entry.tensor.dtype());
  row.apart = entry.tensor.size();
  result.rows.push_back(std::move(row));
  result.notes.push_back(fmt::format("only {} has {}", side, entry.name));
}

}  // namespace

CompareResult compare(const CompareOptions& options, const Request& /*want*/) {
  for (const auto& [source, name] : {std::pair{&options.a, "a"}, {&options.b, "b"}}) {
    if (source->empty()) throw InputError("", name, "", "is needed: two files to compare");
  }
  CompareResult result;
  const std::vector<ResultEntry> a = read_result(options.a, "a", result.notes);
  const std::vector<ResultEntry> b = read_result(options.b, "b", result.notes);
  const auto find = [](const std::vector<ResultEntry>& all, const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.name == name; });
  };
  if (a.size() == 1 && b.size() == 1) {
    compare_entries(a[0], b[0], options, result);
  } else {
    const bool common = std::any_of(
        a.begin(), a.end(), [&](const auto& entry) { return find(b, entry.name) != b.end(); });
    if (!common) throw InputError(options.b.path, "b", "", "holds nothing of the names in a");
    for (const ResultEntry& entry : a) {
      const auto other = find(b, entry.name);
      if (other == b.end()) {
        add_one_sided(entry, "a", result);
      } else {
        compare_entries(entry, *other, options, result);
      }
    }
    for (const ResultEntry& entry : b) {
      if (find(a, entry.name) == a.end()) add_one_sided(entry, "b", result);
    }
  }
  result.equal = std::all_of(result.rows.begin(), result.rows.end(),
                             [](const CompareRow& row) { return row.equal; });
  return result;
}

}  // namespace attnlab
