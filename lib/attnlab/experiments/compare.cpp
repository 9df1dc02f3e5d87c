#include "attnlab/experiments/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// Sums over the pairs that are finite.
struct Sums {
  Index count = 0;
  double a = 0, b = 0, difference2 = 0, b2 = 0;
};

std::optional<double> correlation(const AnyTensor& a, const AnyTensor& b, const Sums& sums) {
  const double mean_a = sums.a / static_cast<double>(sums.count);
  const double mean_b = sums.b / static_cast<double>(sums.count);
  double aa = 0, bb = 0, ab = 0;
  for (Index i = 0; i < a.size(); ++i) {
    const double x = a.at(i) - mean_a, y = b.at(i) - mean_b;
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  if (!(aa > 0) || !(bb > 0)) return std::nullopt;
  return std::clamp(ab / std::sqrt(aa) / std::sqrt(bb), -1.0, 1.0);
}

CompareRow compare_tensors(const std::string& name, const AnyTensor& a, const AnyTensor& b,
                           const CompareOptions& options) {
  if (a.shape() != b.shape()) {
    throw InputError("", name, a.shape().str(),
                     fmt::format("the other one is {}: shapes must agree", b.shape().str()));
  }
  CompareRow row;
  row.name = name;
  row.shape = a.shape().str();
  row.dtype_a = dtype_name(a.dtype());
  row.dtype_b = dtype_name(b.dtype());
  const double tolerance = std::max(default_tolerance(a.dtype()), default_tolerance(b.dtype()));
  row.atol = options.atol.value_or(tolerance);
  row.rtol = options.rtol.value_or(tolerance);
  Sums sums;
  for (Index i = 0; i < a.size(); ++i) {
    const double x = a.at(i), y = b.at(i), error = std::abs(x - y);
    if (!std::isfinite(error)) {
      if (same(x, y)) continue;
      // Nothing is further apart than what has no distance.
      if (row.apart++ == 0 || std::isfinite(*row.a - *row.b)) {
        row.where = index_text(a.shape(), i);
        row.a = x;
        row.b = y;
      }
      continue;
    }
    if (error > row.atol + row.rtol * std::abs(y)) ++row.apart;
    if (!row.max_abs_error || error > *row.max_abs_error) {
      row.max_abs_error = error;
      if (!row.a || std::isfinite(*row.a - *row.b)) {
        row.where = index_text(a.shape(), i);
        row.a = x;
        row.b = y;
      }
    }
    if (y != 0) row.max_rel_error = std::max(row.max_rel_error.value_or(0), error / std::abs(y));
    ++sums.count;
    sums.a += x;
    sums.b += y;
    sums.difference2 += error * error;
    sums.b2 += y * y;
  }
  row.equal = row.apart == 0;
  if (sums.b2 > 0) row.relative_norm = std::sqrt(sums.difference2 / sums.b2);
  if (sums.count > 0) row.correlation = correlation(a, b, sums);
  return row;
}

}  // namespace

CompareResult compare(const CompareOptions& options, const Request& /*want*/) {
  for (const auto& [source, name] : {std::pair{&options.a, "a"}, {&options.b, "b"}}) {
    if (source->empty()) throw InputError("", name, "", "is needed: two files to compare");
  }
  CompareResult result;
  const std::vector<NamedTensor> a = read_result(options.a, "a", result.notes);
  const std::vector<NamedTensor> b = read_result(options.b, "b", result.notes);
  const auto find = [](const std::vector<NamedTensor>& all, const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name == name; });
  };
  if (a.size() == 1 && b.size() == 1) {
    result.rows.push_back(compare_tensors(a[0].name, a[0].tensor, b[0].tensor, options));
  } else {
    for (const NamedTensor& tensor : a) {
      const auto other = find(b, tensor.name);
      if (other == b.end()) {
        result.notes.push_back(fmt::format("only a has {}", tensor.name));
        continue;
      }
      result.rows.push_back(compare_tensors(tensor.name, tensor.tensor, other->tensor, options));
    }
    for (const NamedTensor& tensor : b) {
      if (find(a, tensor.name) == a.end()) {
        result.notes.push_back(fmt::format("only b has {}", tensor.name));
      }
    }
    if (result.rows.empty()) {
      throw InputError(options.b.path, "b", "", "holds no tensor of the names in a");
    }
  }
  result.equal = std::all_of(result.rows.begin(), result.rows.end(),
                             [](const CompareRow& row) { return row.equal; });
  return result;
}

}  // namespace attnlab
