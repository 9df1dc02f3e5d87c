#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "attnlab/core/describe.h"
#include "attnlab/core/tensor.h"

namespace attnlab {

// The gradient of sum(cotangent o f(x)) with respect to x, as central differences see it.
struct Differences {
  Tensor<double> gradient;  // the shape of x
  // What rounding f leaves uncertain of its norm: below that, nothing can be told.
  double resolution = 0;
};

// (f(x + h e_i) - f(x - h e_i)) / 2h for every element i, weighted with the cotangent, which has
// the shape of f(x). The truncation error is h^2 / 6 times the third derivative, that of rounding
// the machine epsilon over h: h = 1e-5 is about where their sum is least (Theory H). f is called
// from several threads.
Differences central_differences(const std::function<Tensor<double>(const Tensor<double>&)>& f,
                                const Tensor<double>& x, const Tensor<double>& cotangent,
                                Index threads, double h = 1e-5);

// The same, extrapolated to h = 0 from steps of h and 2h (Richardson): the truncation error is of
// the order of h^4, that of rounding half as much again.
Differences extrapolated_differences(const std::function<Tensor<double>(const Tensor<double>&)>& f,
                                     const Tensor<double>& x, const Tensor<double>& cotangent,
                                     Index threads, double h = 1e-5);

// How far the gradient of one tensor is from its differences.
struct GradientCheck {
  std::string tensor;
  std::optional<double> relative_error;
  double max_abs_error = 0;
  std::string where;
  double norm = 0;
  double resolution = 0;
  bool passed = false;

  static constexpr auto fields() {
    using R = GradientCheck;
    return std::tuple(
        field("tensor", &R::tensor, "what is differentiated by"),
        field("relative_error", &R::relative_error,
              "||gradient - differences|| / ||differences||, nothing where differences are within "
              "the resolution"),
        field("max_abs_error", &R::max_abs_error, "max |gradient - differences|"),
        field("where", &R::where, "index of the largest absolute error"),
        field("norm", &R::norm, "||differences||"),
        field("resolution", &R::resolution, "the part of the norm that rounding may have made"),
        field("passed", &R::passed,
              "the relative error is at most the tolerance, or the error below the resolution"));
  }
};

// Passes when ||gradient - differences|| is at most tolerance ||differences||, or the resolution
// where that is more. A gradient that is a sum of terms which cancel has their rounding: `terms` is
// the norm that tolerance is of where it is more. NaN and infinities on either side fail. The two
// have the same shape.
GradientCheck check_gradient(std::string_view tensor, const Tensor<double>& gradient,
                             const Differences& differences, double tolerance, double terms = 0);

// What `check` says of central differences, or where it fails, for which a function that bends
// within h is reason enough, of extrapolated ones.
GradientCheck check_by_differences(const std::function<Tensor<double>(const Tensor<double>&)>& f,
                                   const Tensor<double>& x, const Tensor<double>& cotangent,
                                   Index threads,
                                   const std::function<GradientCheck(Differences)>& check);

}  // namespace attnlab
