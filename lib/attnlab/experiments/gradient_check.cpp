#include "attnlab/experiments/gradient_check.h"

#include <cmath>
#include <limits>

#include "attnlab/core/threads.h"
#include "attnlab/experiments/index_text.h"

namespace attnlab {

Differences central_differences(const std::function<Tensor<double>(const Tensor<double>&)>& f,
                                const Tensor<double>& x, const Tensor<double>& cotangent,
                                Index threads, double h) {
  Differences result{Tensor<double>::uninitialized(x.shape()), 0};
  parallel_for(threads, x.size(), [&](Index i) {
    Tensor<double> moved = x;
    moved[i] = x[i] + h;
    const double upper = moved[i];
    const Tensor<double> above = f(moved);
    moved[i] = x[i] - h;
    // The step as it was taken, rounded. What is not finite takes none.
    double step = upper - moved[i];
    if (!(step > 0)) step = 2 * h;
    const Tensor<double> below = f(moved);
    // The differences are summed, not the losses: what does not change is exactly 0.
    double sum = 0;
    for (Index o = 0; o < cotangent.size(); ++o) sum += cotangent[o] * (above[o] - below[o]);
    result.gradient[i] = sum / step;
  });
  const Tensor<double> output = f(x);
  double squares = 0;
  for (Index o = 0; o < output.size(); ++o) squares += std::pow(cotangent[o] * output[o], 2);
  result.resolution = std::numeric_limits<double>::epsilon() / h *
                      std::sqrt(squares * static_cast<double>(x.size()));
  return result;
}

Differences extrapolated_differences(const std::function<Tensor<double>(const Tensor<double>&)>& f,
                                     const Tensor<double>& x, const Tensor<double>& cotangent,
                                     Index threads, double h) {
  Differences near = central_differences(f, x, cotangent, threads, h);
  const Differences far = central_differences(f, x, cotangent, threads, 2 * h);
  for (Index i = 0; i < x.size(); ++i) near.gradient[i] += (near.gradient[i] - far.gradient[i]) / 3;
  near.resolution = 4 * near.resolution / 3 + far.resolution / 3;
  return near;
}

GradientCheck check_gradient(std::string_view tensor, const Tensor<double>& gradient,
                             const Differences& differences, double tolerance, double terms) {
  GradientCheck check;
  check.tensor = tensor;
  check.resolution = differences.resolution;
  double squares = 0, error_squares = 0;
  for (Index i = 0; i < gradient.size(); ++i) {
    const double expected = differences.gradient[i], error = std::abs(gradient[i] - expected);
    squares += expected * expected;
    error_squares += error * error;
    // The first NaN stays: nothing is further apart than what has no distance.
    if (i == 0 || error > check.max_abs_error ||
        (std::isnan(error) && !std::isnan(check.max_abs_error))) {
      check.max_abs_error = error;
      check.where = index_text(gradient.shape(), i);
    }
  }
  check.norm = std::sqrt(squares);
  const double error = std::sqrt(error_squares);
  if (check.norm > check.resolution) check.relative_error = error / check.norm;
  check.passed = std::isfinite(error) &&
                 error <= std::max(tolerance * std::max(check.norm, terms), check.resolution);
  return check;
}

GradientCheck check_by_differences(const std::function<Tensor<double>(const Tensor<double>&)>& f,
                                   const Tensor<double>& x, const Tensor<double>& cotangent,
                                   Index threads,
                                   const std::function<GradientCheck(Differences)>& check) {
  GradientCheck simple = check(central_differences(f, x, cotangent, threads));
  if (simple.passed) return simple;
  return check(extrapolated_differences(f, x, cotangent, threads));
}

}  // namespace attnlab
