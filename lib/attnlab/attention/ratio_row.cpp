#include "attnlab/attention/ratio_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTiny = 0x1p-400;  // the squares of less, and products of three, may underflow
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A step from x to where the largest eigenvalue is if the others but their largest are some of one
// size and the rest far smaller, which keeps the sum of their cubes too: by Newton's method, as in
// RatioRow::largest_eigenvalue.
double nearer(const RatioSums& sums, double x) {
  const double rho = sums.largest, rho2 = rho * rho;
  const double rest = sums.ratios - rho, squares = sums.squares - rho2;
  const double cubes = sums.cubes - rho2 * rho;
  // Differences that are all rounding say nothing.
  if (!(squares > 0x1p-30 * rho2 && cubes > 0x1p-30 * rho2 * rho && x > rho)) return x;
  const double size = std::min(cubes / squares, rho);
  const double some = std::min(squares / size, rest);
  const double t0 = rho / (x - rho), t1 = some / (x - size), t2 = (rest - some) / x;
  const double h = t0 + t1 + t2;
  const double descent = t0 / (x - rho) + t1 / (x - size) + t2 / x;
  const double step = ((1 - x) * h - 1) / (h + descent / h);
  return x + step < 1 ? x + step : x;
}

// Where the largest eigenvalue is about, in units of s_m, if it is above what two weights alone
// have: the root where the others but their largest are all of one size, which keeps their sum and
// that of their squares.
double eigenvalue_near(const RatioSums& sums, double of_two) {
  const double rho = sums.largest;
  const double rest = sums.ratios - rho, squares = sums.squares - rho * rho;
  if (!(rest > 0x1p-40 * rho && rho > kTiny)) return of_two;
  // rho / (x - rho) + rest / (x - size) = 1 / (1 - x)
  const double size = std::min(squares / rest, rho);
  const double sum = rho + rest, mixed = rho * (size + rest);
  const double b = (sum + mixed + rho + size) / 2, c = rho * size + mixed;
  const double x = (b + std::sqrt(std::max(0.0, b * b - (1 + sum) * c))) / (1 + sum);
  // Between weights that are almost equal it may be rounded to anywhere.
  if (!(x < 1)) return of_two;
  return std::max(nearer(sums, std::max(x, of_two)), of_two);
}

// The secular equation around a point, see RatioRow::largest_eigenvalue.
class SecularModel {
 public:
  // Sums of powers of t, the largest t, and 1 - x.
  SecularModel(const std::array<double, kSecularSums>& sums, double largest, double distance)
      : sums_(sums), largest_(largest), distance_(distance) {}

  double newton_step() const {
    return (distance_ * sums_[0] - 1) / (sums_[0] + sums_[1] / sums_[0]);
  }

  // The root of h(e) (1 - x - e) = 1 next to `e`, by Newton's method.
  double root_near(double e) const {
    constexpr int kMost = 6;
    const auto& f = sums_;
    for (int i = 0; i < kMost; ++i) {
      const double e2 = e * e, e4 = e2 * e2;
      const double h = ((f[0] - e * f[1]) + e2 * (f[2] - e * f[3])) + e4 * (f[4] - e * f[5]);
      const double descent =
          ((f[1] - e * (2 * f[2])) + e2 * (3 * f[3] - e * (4 * f[4]))) + e4 * (5 * f[5]);
      const double beyond = largest_ * power(e * largest_) / (1 + e * largest_);
      const double rest = distance_ - e;
      const double change = ((h + beyond) * rest - 1) / (h + descent * rest);
      e += change;
      // The next would be about the square of this.
      if (change * change * (1 + largest_) < 0x1p-58) break;
    }
    return e;
  }

  // Whether all that the powers leave out is below a rounding.
  bool holds(double e) const {
    if (!(std::abs(e) * largest_ < 0.25)) return false;
    const double others = std::max(0.0, sums_.back() - power(largest_));
    return power(e) * (others * largest_) <= 0x1p-54 * sums_[0];
  }

 private:
  static double power(double x) {
    const double x2 = x * x;
    return x2 * x2 * x2;
  }

  std::array<double, kSecularSums> sums_;
  double largest_, distance_;
};

}  // namespace

void RatioRow::reserve() {
  const std::size_t count = 2 * padded_length(size_);
  if (memory_.bytes() < count * sizeof(double)) memory_ = Buffer(count, sizeof(double));
}

// A row that is all zero, or NaN.
void RatioRow::set_all(double value) {
  argmax_ = 0;
  sums_ = {};
  sums_.ratios = sums_.second = max_weight_ = rest_ = log_sum_ = value;
}

void RatioRow::set_logits(std::span<const double> scores, double factor) {
  size_ = scores.size();
  reserve();
  double* row = log_ratios();
  range_ = scale_logits(scores, factor, row);
  if (!range_.finite) {
    const auto invalid = [](double z) { return std::isnan(z) || z == kInfinity; };
    if (std::any_of(row, row + size_, invalid)) return set_all(kNaN);
  }
  if (range_.highest == -kInfinity) return set_all(0);
  argmax_ = first_place(row, size_, range_.highest);
  ratios_of_logits(row, ratios(), size_, argmax_, range_);
  sums_ = sums_of_ratios(ratios(), row, size_);
  max_weight_ = 1 / total();
  rest_ = sums_.ratios / total();
  log_sum_ = std::log1p(sums_.ratios);
}

template <class T>
void RatioRow::set_row(const SoftmaxRow<T>& row) {
  size_ = static_cast<std::size_t>(row.size());
  range_ = {};
  const auto m = static_cast<std::size_t>(row.argmax());
  const double largest = size_ > 0 ? static_cast<double>(row.weights()[m]) : 0;
  if (!(largest > 0)) return set_all(largest);
  reserve();
  const std::size_t length = padded_length(size_);
  std::fill(ratios(), ratios() + length, 0.0);
  std::fill(log_ratios(), log_ratios() + length, -kInfinity);
  for (std::size_t i = 0; i < size_; ++i) {
    if (i == m) continue;
    ratios()[i] = static_cast<double>(row.weights()[i]) / largest;
    log_ratios()[i] = static_cast<double>(row.log_ratios()[i]);
  }
  argmax_ = m;
  sums_ = sums_of_ratios(ratios(), log_ratios(), size_);
  max_weight_ = largest;
  rest_ = row.rest();
  log_sum_ = row.log_sum();
}

std::span<double> RatioRow::small_ratios(double limit, std::vector<double>& memory) {
  if (memory.size() < padded_length(size_)) memory.resize(padded_length(size_));
  if (!(max_weight_ > 0)) return {};
  // The largest is out of reach for the while.
  ratios()[argmax_] = 2;
  const std::size_t count =
      attnlab::small_ratios(ratios(), size_, std::min(limit, 1.0), memory.data());
  ratios()[argmax_] = 0;
  return std::span(memory).first(count);
}

// With o the weights but the largest, r their sum and S_k that of their powers
//     tr J = s_m r + sum o (1 - o) = s_m r + r - S_2
//     ||J||_F^2 = s_m^2 r^2 + sum o^2 (1 - o)^2 + 2 s_m^2 S_2 + (S_2^2 - S_4)
//               = s_m^2 r^2 + S_2 (1 + 2 s_m^2 + S_2) - 2 S_3
// where no o is above 1/2: S_2 is at most r / 2, and 2 S_3 at most 4/7 of what it is taken from
// (S_2 is at most r^2, and 2 o / (1 + 3 o^2) at most 4/7). So little is lost by the differences.
SoftmaxMetrics RatioRow::metrics() const {
  // Squares of the smallest float64 numbers would vanish; scaled up they do not.
  const double scale = sums_.largest < kTiny ? 0x1p600 : 1;
  ScaledPowers powers{sums_.squares, sums_.cubes};
  if (scale != 1 && sums_.largest > 0) {
    powers = scaled_powers(ratios(), size_, scale);
  }
  const double s_m = max_weight_, s_m2 = s_m * s_m;
  const double squares = s_m2 * sums_.squares;
  const double corner = s_m * (rest_ * scale);
  const double scaled_frobenius =
      std::sqrt(corner * corner + s_m2 * (powers.squares * (1 + 2 * s_m2 + squares)) -
                2 * (s_m2 * s_m) * powers.cubes);
  SoftmaxMetrics metrics;
  metrics.max_weight = s_m;
  metrics.sum_squares = s_m2 + squares;
  metrics.entropy = log_sum_ + s_m * sums_.surprise;
  metrics.trace = s_m * rest_ + (rest_ - squares);
  metrics.frobenius = scaled_frobenius / scale;
  metrics.frobenius_squared = metrics.frobenius * metrics.frobenius;
  return metrics;
}

// The eigenvalues of J = diag(s) - s s^T other than 0 solve sum_i s_i / (s_i - x) = 0 (the secular
// equation of a rank-one update, with sum s_i = 1), the largest between the two largest weights. In
// units of s_m, with t_i = rho_i / (x - rho_i) over the other weights,
//
//     sum t_i = 1 / (1 - x)        for x in (max rho, 1)
//
// A pass over the row at some x gives the sums F_k of t_i^k, and with them the left side around x:
// at x / (1 - e) every t_i is (1 - e) t_i / (1 + e t_i), and the equation
//
//     h(e) = sum t_i / (1 + e t_i) = 1 / (1 - x - e),     h(e) = F_1 - F_2 e + F_3 e^2 - ..
//
// where the largest t_i is taken exactly and only the powers of the others end somewhere. As long
// as x is too far off for that, the step is Newton's on 1 / h: the reciprocal of the left side is
// concave in x (a parallel sum of the lines (x - rho_i) / rho_i) and that of the right a line, so
// that it climbs to the root from any point without a safeguard.
double RatioRow::largest_eigenvalue() const {
  const double rho = sums_.largest;
  if (!(rest_ > 0)) return rest_;             // one weight only, or none; NaN stays NaN
  const double of_two = 2 * rho / (1 + rho);  // a lower bound
  double x = eigenvalue_near(sums_, of_two);
  constexpr int kNeverReached = 100;
  for (int pass = 0; pass < kNeverReached && x > rho && x < 1; ++pass) {
    const SecularModel model(secular_sums(ratios(), size_, x), rho / (x - rho), 1 - x);
    const double newton = model.newton_step();
    const double step = model.root_near(newton);
    const bool done = model.holds(step);
    x = std::clamp(x / (1 - (done ? step : newton)), of_two, 1.0);
    if (done) break;
  }
  return std::max(x, rho) * max_weight_;
}

template void RatioRow::set_row<float>(const SoftmaxRow<float>&);
template void RatioRow::set_row<double>(const SoftmaxRow<double>&);

}  // namespace attnlab
