#pragma once

#include <optional>
#include <tuple>

#include "attnlab/core/describe.h"
#include "attnlab/stats/distributions.h"

namespace attnlab {

// How the entries of what an experiment draws are distributed.
struct EntryOptions {
  Distribution distribution = Distribution::normal;
  std::optional<double> nu;
  double sigma = 1;

  static constexpr auto fields() {
    using O = EntryOptions;
    return std::tuple(
        field("distribution", &O::distribution, "of every entry, of mean 0 and variance sigma^2"),
        field("nu", &O::nu, "degrees of freedom of student_t, 5 unless given",
              {.range = between(1.0, 1e15)}),
        field("sigma", &O::sigma, "standard deviation of an entry", {.range = between(1e-9, 1e9)}));
  }
};

// The law those options name, of mean `mean`. Throws InputError when nu is given to another
// distribution than student_t.
EntryLaw entry_law(const EntryOptions& options, double mean = 0);

}  // namespace attnlab
