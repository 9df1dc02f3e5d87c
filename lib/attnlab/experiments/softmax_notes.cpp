#include "attnlab/experiments/softmax_notes.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "attnlab/attention/shifted_row.h"
#include "attnlab/attention/softmax.h"

namespace attnlab {
namespace {

std::string count_of(Index count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The arguments beyond which exp is infinite, and below which it is 0, in a type.
struct ExpLimits {
  double overflow, underflow;
};
ExpLimits exp_limits(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {11.09, -17.33};
    case DType::bfloat16:
      return {88.72, -92.88};
    case DType::float32:
      return {88.72, -103.97};
    default:
      return {709.78, -745.13};
  }
}

// What kept rows from a distribution.
struct Troubles {
  Index empty = 0;         // rows without a finite logit
  Index invalid = 0;       // rows holding NaN or +infinity
  Index not_a_number = 0;  // values that overflowing exponentials made NaN
  Index values = 0;        // values of the rows that have them
  Index sum_overflows = 0;
  Index vanished = 0;
};

template <class T>
void look_at_naive(std::span<const T> x, double temperature, Troubles& troubles) {
  const T divisor = convert_element<T>(temperature);
  T sum = T(0);
  bool overflows = false;
  for (const T logit : x) {
    const T scaled = logit / divisor;
    const T e = convert_element<T>(std::exp(convert_element<ComputeType<T>>(scaled)));
    overflows = overflows || std::isinf(convert_element<double>(e));
    sum = sum + e;
  }
  if (overflows) {
    std::vector<T> weights(x.size());
    naive_softmax_row<T>(x, weights, temperature);
    for (const T s : weights) {
      if (std::isnan(convert_element<double>(s))) ++troubles.not_a_number;
    }
    troubles.values += static_cast<Index>(x.size());
  } else if (std::isinf(convert_element<double>(sum))) {
    ++troubles.sum_overflows;
  } else if (convert_element<double>(sum) == 0) {
    ++troubles.vanished;
  }
}

template <class T>
Troubles troubles_of(SoftmaxMethod method, const RowsOf<T>& x, double temperature) {
  Troubles troubles;
  for (Index i = 0; i < x.count; ++i) {
    const auto row = x.row(i);
    bool invalid = false, finite = false;
    for (const T logit : row) {
      const double z = convert_element<double>(logit);
      invalid = invalid || std::isnan(z) || z == std::numeric_limits<double>::infinity();
      finite = finite || std::isfinite(z);
    }
    if (invalid) {
      ++troubles.invalid;
    } else if (!finite) {
      ++troubles.empty;
    } else if (method == SoftmaxMethod::naive) {
      look_at_naive(row, temperature, troubles);
    }
  }
  return troubles;
}

}  // namespace

template <class T>
void add_softmax_notes(SoftmaxMethod method, const RowsOf<T>& x, double temperature,
                       std::vector<std::string>& notes) {
  const Troubles troubles = troubles_of(method, x, temperature);
  const bool naive = method == SoftmaxMethod::naive;
  const auto note = [&](const std::string& text) {
    const DType dtype = AnyTensor(Tensor<T>()).dtype();
    notes.push_back(fmt::format("{} {}: {}", naive ? "naive" : "stable", dtype_name(dtype), text));
  };
  const ExpLimits limits = exp_limits(AnyTensor(Tensor<T>()).dtype());
  if (troubles.empty > 0) {
    note(fmt::format("{} without a value above -infinity: softmax {}",
                     count_of(troubles.empty, "row"), naive ? "NaN (0/0)" : "0"));
  }
  if (troubles.invalid > 0) {
    note(fmt::format("{} with NaN or +infinity: softmax NaN{}", count_of(troubles.invalid, "row"),
                     naive ? " or 0" : ""));
  }
  if (troubles.not_a_number > 0) {
    note(fmt::format("{} of {} values are NaN: exp overflows above {}", troubles.not_a_number,
                     troubles.values, limits.overflow));
  }
  if (troubles.sum_overflows > 0) {
    note(fmt::format("{} whose sum of exponentials overflows: every weight is 0",
                     count_of(troubles.sum_overflows, "row")));
  }
  if (troubles.vanished > 0) {
    note(fmt::format("{} whose exponentials are all 0, as they are below {}: 0/0 is NaN",
                     count_of(troubles.vanished, "row"), limits.underflow));
  }
}

#define ATTNLAB_INSTANTIATE(T)                                                \
  template void add_softmax_notes<T>(SoftmaxMethod, const RowsOf<T>&, double, \
                                     std::vector<std::string>&);
ATTNLAB_INSTANTIATE(Float16)
ATTNLAB_INSTANTIATE(BFloat16)
ATTNLAB_INSTANTIATE(float)
ATTNLAB_INSTANTIATE(double)
#undef ATTNLAB_INSTANTIATE

}  // namespace attnlab
