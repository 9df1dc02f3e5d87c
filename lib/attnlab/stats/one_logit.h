#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "attnlab/core/dtype.h"

namespace attnlab {

// Steps and ends of the trapezoid rules of softmax_theory. Their integrands are analytic and fall
// off at least like a Gaussian or an exponential on both sides, so that the rule converges
// geometrically: exp(-e^w) is analytic for |Im w| < pi/2 and a step h leaves e^{-pi^2/h}, a
// Gaussian of deviation s leaves e^{-2 (pi s/h)^2}.
inline constexpr double kQuadratureStep = 0.15;
// Normals beyond this many deviations are left out: n times 1e-21.
inline constexpr double kNormalReach = 9.5;
// Where exp(-e^w) is 1 and where it is 0.
inline constexpr double kLowestExponent = -50, kHighestExponent = 4.2;

// From here on nothing but 1/sqrt(v) changes, to 1e-12.
inline constexpr double kFrozenVariance = 1e12;

// Throws InputError unless n >= 1 and v is >= 0 and finite.
void check_softmax(std::uint64_t n, double v);

// How many deviations above the mean the largest of n normals is, roughly; at least 1. Its
// distribution is about as wide as one over this.
double typical_normal_maximum(double n);

// The trapezoid weights of N(0, s^2) on a grid of step h, and the sums of those below a point.
class NormalGrid {
 public:
  NormalGrid(double s, double h);

  Index reach() const { return reach_; }
  // The weights of the points from j on.
  Eigen::Ref<const Eigen::VectorXd> weights(Index j, Index count);
  // The sum of the weights of all points before j.
  double below(Index j) const;

 private:
  double weight(Index j) const;

  double ratio_;  // h / s
  Index reach_;
  Eigen::VectorXd weights_, below_;  // of all points, unless there are more than are ever used
};

// The functions of one logit z ~ N(0, s^2) at u = h i: averages over w = u + z on the grid of step
// h.
class OneLogit {
 public:
  explicit OneLogit(double s);

  double step() const { return h_; }

  // Averages of these functions of w: exp(-e^w), 1 - exp(-e^w), A_k = e^{kw} exp(-e^w), and w or x
  // times them, x the distance from the table's first point: of the size of s where s is small.
  enum Row { kPhi, kOneMinusPhi, kA1, kA2, kA3, kWA1, kXA1, kXA2, kXXA2, kUnused, kRows };
  using Values = Eigen::Matrix<double, kRows, 1>;
  struct Average {
    Values mean;
    double shift = 0;   // the mean of w under A_2 less that under A_1
    double spread = 0;  // E e^{2w} exp(-e^w) (w - its mean under A_2)^2
  };
  // All 0 where no w is in reach.
  Average at(Index i);

 private:
  void fill(Index first, Index count);

  double h_;
  NormalGrid normal_;
  Index first_, last_;
  bool shared_;
  Eigen::Matrix<double, kRows, Eigen::Dynamic> table_;
  Index table_first_ = 0;
};

}  // namespace attnlab
