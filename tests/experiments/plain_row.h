#pragma once

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// What a row says, by the short formulas in long double and the whole Jacobian.
struct PlainRow {
  double max_p = 0, sum_p2 = 0, entropy = 0, jacobian_f2 = 0, trace = 0, lambda_max = 0, gap = 0;
  double near_zero = 0, exact_zero = 0, subnormal = 0;
  bool max_is_one = false, naive_nan = false;
};

inline PlainRow plain_row(const std::vector<double>& logits, double near_zero) {
  const std::size_t n = logits.size();
  std::vector<double> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<long double> p(n);
  long double total = 0;
  for (std::size_t j = 0; j < n; ++j) {
    p[j] = std::exp(static_cast<long double>(logits[j]) - static_cast<long double>(sorted[0]));
    total += p[j];
  }
  for (long double& x : p) x /= total;
  PlainRow row;
  if (n > 1) row.gap = sorted[0] - sorted[1];
  Eigen::MatrixXd jacobian(n, n);
  long double square = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const long double entry = i == j ? p[i] * (1 - p[i]) : -p[i] * p[j];
      square += entry * entry;
      jacobian(static_cast<Index>(i), static_cast<Index>(j)) = static_cast<double>(entry);
      const auto limit = static_cast<long double>(near_zero) / static_cast<long double>(n * n);
      if (std::abs(entry) < limit) ++row.near_zero;
    }
    row.max_p = std::max(row.max_p, static_cast<double>(p[i]));
    row.sum_p2 += static_cast<double>(p[i] * p[i]);
    row.entropy -= static_cast<double>(p[i] > 0 ? p[i] * std::log(p[i]) : 0);
    const auto weight = static_cast<float>(p[i]);
    row.exact_zero += weight == 0 ? 1 : 0;
    row.subnormal += weight > 0 && weight < std::numeric_limits<float>::min() ? 1 : 0;
    row.naive_nan |= std::isinf(std::exp(static_cast<float>(logits[i])));
  }
  // As float32 has it: the sum is rounded before the division.
  row.max_is_one = 1 / static_cast<float>(total) == 1;
  row.trace = 1 - row.sum_p2;
  row.jacobian_f2 = static_cast<double>(square);
  row.lambda_max =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(jacobian).eigenvalues().maxCoeff();
  return row;
}

inline double mean_of(const std::vector<PlainRow>& rows, double PlainRow::*member) {
  double sum = 0;
  for (const PlainRow& row : rows) sum += row.*member;
  return sum / static_cast<double>(rows.size());
}

}  // namespace attnlab
