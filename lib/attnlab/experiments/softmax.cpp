#include "attnlab/experiments/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attnlab/attention/shifted_row.h"
#include "attnlab/attention/softmax.h"
#include "attnlab/attention/softmax_jacobian.h"
#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/core/threads.h"
#include "attnlab/experiments/softmax_input.h"
#include "attnlab/experiments/softmax_notes.h"

namespace attnlab {
namespace {

template <class To, class From>
std::vector<To> converted(std::span<const From> values) {
  std::vector<To> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(),
                 [](From value) { return convert_element<To>(value); });
  return result;
}

// One row by one method.
template <class T>
struct MethodRow {
  std::vector<T> weights;          // exactly as the method gives them
  SoftmaxRow<ComputeType<T>> row;  // what their derivative is computed from
};

template <class T>
MethodRow<T> compute_row(SoftmaxMethod method, std::span<const T> x, double temperature) {
  MethodRow<T> result;
  result.weights.resize(x.size());
  if (method == SoftmaxMethod::stable) {
    softmax_row<T>(x, result.weights, temperature);
    result.row.set_logits(converted<ComputeType<T>, T>(x), temperature);
  } else {
    naive_softmax_row<T>(x, result.weights, temperature);
    result.row.set_weights(converted<ComputeType<T>, T>(result.weights));
  }
  return result;
}

SoftmaxMethodRow describe(SoftmaxMethod method, Index index, std::vector<double> weights,
                          const SoftmaxMetrics& metrics, double lambda_max) {
  SoftmaxMethodRow row;
  row.method = kChoiceNames<SoftmaxMethod>[static_cast<std::size_t>(method)];
  row.row = index;
  row.sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  row.non_finite =
      std::count_if(weights.begin(), weights.end(), [](double s) { return !std::isfinite(s); });
  row.softmax = std::move(weights);
  row.entropy = metrics.entropy;
  row.trace = metrics.trace;
  row.frobenius = metrics.frobenius;
  row.lambda_max = lambda_max;
  return row;
}

template <class T>
std::vector<SoftmaxMethodRow> compare_methods(const SoftmaxOptions& options, const RowsOf<T>& x) {
  const auto methods = static_cast<Index>(options.method.size());
  require_memory(checked_bytes(std::array{static_cast<std::uint64_t>(x.values.size()),
                                          static_cast<std::uint64_t>(methods)},
                               sizeof(double))
                     .value_or(std::numeric_limits<std::uint64_t>::max()),
                 "rows");
  std::vector<SoftmaxMethodRow> rows(static_cast<std::size_t>(x.count * methods));
  parallel_for(options.run.threads, x.count, [&](Index i) {
    for (Index m = 0; m < methods; ++m) {
      const SoftmaxMethod method = options.method[static_cast<std::size_t>(m)];
      const MethodRow<T> computed = compute_row(method, x.row(i), options.temperature);
      rows[static_cast<std::size_t>(i * methods + m)] =
          describe(method, i, converted<double, T>(computed.weights), softmax_metrics(computed.row),
                   softmax_largest_eigenvalue(computed.row));
    }
  });
  return rows;
}

// The matrices of one method, row by row.
template <class T>
class Matrices {
 public:
  Matrices(const SoftmaxOptions& options, const RowsOf<T>& x, const Request& want)
      : method_(options.method.front()),
        temperature_(options.temperature),
        x_(x),
        scaled_(want.has("scaled"), x.shape),
        exponentials_(want.has("exponentials"), x.shape),
        sums_(want.has("sums"), x.leading()),
        softmax_(want.has("softmax"), x.shape),
        log_softmax_(want.has("log_softmax"), x.shape),
        diagonal_(want.has("jacobian_diagonal"), x.shape),
        entropy_(true, x.leading()),
        trace_(true, x.leading()),
        frobenius_(true, x.leading()),
        lambda_max_(true, x.leading()) {
    const bool jacobian = want.has("jacobian") || options.jacobian;
    const bool off_diagonal = want.has("jacobian_off_diagonal");
    if (jacobian || off_diagonal) {
      const Index kept = (jacobian ? 1 : 0) + (off_diagonal ? 1 : 0);
      const Index in_work = 2 * std::min(thread_count(options.run.threads), x.count);
      const Shape squares = jacobian_shape(x.shape, sizeof(C), kept * x.count + in_work);
      if (jacobian) jacobian_ = Kept<T>(true, squares);
      if (off_diagonal) off_diagonal_ = Kept<T>(true, squares);
    }
    if (jacobian) differences_.resize(static_cast<std::size_t>(x.count));
  }

  void fill_row(Index i) {
    const MethodRow<T> computed = compute_row(method_, x_.row(i), temperature_);
    softmax_.put(i, computed.weights);
    fill_steps(i);
    fill_log_softmax(i, computed.weights);
    fill_metrics(i, computed.row);
    if (diagonal_ || off_diagonal_ || jacobian_) fill_jacobian(i, computed.row);
  }

  SoftmaxResult take() {
    SoftmaxResult result;
    result.scaled = scaled_.take();
    result.exponentials = exponentials_.take();
    result.sums = sums_.take();
    result.softmax = softmax_.take();
    result.log_softmax = log_softmax_.take();
    result.jacobian_diagonal = diagonal_.take();
    result.jacobian_off_diagonal = off_diagonal_.take();
    result.jacobian = jacobian_.take();
    result.entropy = entropy_.take();
    result.trace = trace_.take();
    result.frobenius = frobenius_.take();
    result.lambda_max = lambda_max_.take();
    for (const std::optional<double>& difference : differences_) {
      if (difference) {
        result.finite_difference_error =
            std::max(result.finite_difference_error.value_or(0), *difference);
      }
    }
    return result;
  }

 private:
  using C = ComputeType<T>;

  // The calculation on the way to the weights.
  void fill_steps(Index i) {
    if (!scaled_ && !exponentials_ && !sums_) return;
    const auto x = x_.row(i);
    std::vector<T> scaled(x.size()), exponentials(x.size());
    T sum = T(0);
    if (method_ == SoftmaxMethod::stable) {
      SoftmaxRow<C> row;
      row.set_logits(converted<C, T>(x), temperature_);
      double wide_sum = 0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        const C e = std::exp(row.log_ratios()[j]);
        scaled[j] = convert_element<T>(row.log_ratios()[j]);
        exponentials[j] = convert_element<T>(e);
        wide_sum += e;
      }
      sum = convert_element<T>(wide_sum);
    } else {
      const T divisor = convert_element<T>(temperature_);
      for (std::size_t j = 0; j < x.size(); ++j) {
        scaled[j] = x[j] / divisor;
        exponentials[j] = convert_element<T>(std::exp(convert_element<C>(scaled[j])));
        sum = sum + exponentials[j];
      }
    }
    scaled_.put(i, scaled);
    exponentials_.put(i, exponentials);
    sums_.put(i, std::span<const T>(&sum, 1));
  }

  void fill_log_softmax(Index i, std::span<const T> weights) {
    if (!log_softmax_) return;
    std::vector<T> logs(weights.size());
    if (method_ == SoftmaxMethod::stable) {
      log_softmax_row<T>(x_.row(i), logs, temperature_);
    } else {
      std::transform(weights.begin(), weights.end(), logs.begin(),
                     [](T s) { return convert_element<T>(std::log(convert_element<C>(s))); });
    }
    log_softmax_.put(i, logs);
  }

  void fill_metrics(Index i, const SoftmaxRow<C>& row) {
    const SoftmaxMetrics metrics = softmax_metrics(row);
    entropy_.put(i, metrics.entropy);
    trace_.put(i, metrics.trace);
    frobenius_.put(i, metrics.frobenius);
    lambda_max_.put(i, softmax_largest_eigenvalue(row));
  }

  void fill_jacobian(Index i, const SoftmaxRow<C>& row) {
    const auto n = static_cast<std::size_t>(row.size());
    std::vector<C> wide(n * n);
    softmax_jacobian<C>(row, wide);
    std::vector<T> entries = converted<T, C>(wide);
    jacobian_.put(i, entries);
    if (jacobian_) differences_[static_cast<std::size_t>(i)] = largest_difference(row, entries);
    std::vector<T> diagonal(n);
    for (std::size_t j = 0; j < n; ++j) diagonal[j] = std::exchange(entries[j * n + j], T(0));
    diagonal_.put(i, diagonal);
    off_diagonal_.put(i, entries);
  }

  // Between the Jacobian and central differences; nothing for a row that is NaN.
  static std::optional<double> largest_difference(const SoftmaxRow<C>& row,
                                                  std::span<const T> jacobian) {
    if (std::isnan(row.rest())) return std::nullopt;
    const auto n = static_cast<std::size_t>(row.size());
    std::vector<double> column(n);
    double largest = 0;
    for (std::size_t j = 0; j < n; ++j) {
      softmax_central_differences(row, static_cast<Index>(j), column);
      for (std::size_t i = 0; i < n; ++i) {
        largest =
            std::max(largest, std::fabs(convert_element<double>(jacobian[i * n + j]) - column[i]));
      }
    }
    return largest;
  }

  SoftmaxMethod method_;
  double temperature_;
  const RowsOf<T>& x_;
  Kept<T> scaled_, exponentials_, sums_, softmax_, log_softmax_, diagonal_, off_diagonal_,
      jacobian_;
  Kept<double> entropy_, trace_, frobenius_, lambda_max_;
  std::vector<std::optional<double>> differences_;
};

std::string methods_text(const std::vector<SoftmaxMethod>& methods) {
  std::string text;
  for (const SoftmaxMethod method : methods) {
    text += text.empty() ? "" : ",";
    text += kChoiceNames<SoftmaxMethod>[static_cast<std::size_t>(method)];
  }
  return text;
}

void check_options(const SoftmaxOptions& options) {
  const auto& methods = options.method;
  if (methods.empty()) throw InputError("", "method", "", "need stable, naive or both");
  if (std::count(methods.begin(), methods.end(), methods.front()) > 1 || methods.size() > 2) {
    throw InputError("", "method", methods_text(methods), "need each method once");
  }
  if (options.jacobian && methods.size() > 1) {
    throw InputError("", "jacobian", "true", "need one method: the rows of two hold no matrices");
  }
  if (!(options.temperature > 0) || std::isinf(options.temperature)) {
    throw InputError("", "temperature", fmt::format("{}", options.temperature),
                     "need a finite number above 0");
  }
}

template <class T>
SoftmaxResult softmax_of(const SoftmaxOptions& options, const RowsOf<T>& x, const Request& want) {
  SoftmaxResult result;
  if (options.method.size() > 1) {
    result.rows = compare_methods(options, x);
  } else {
    Matrices<T> matrices(options, x, want);
    parallel_for(options.run.threads, x.count, [&](Index i) { matrices.fill_row(i); });
    result = matrices.take();
  }
  for (const SoftmaxMethod method : options.method) {
    add_softmax_notes(method, x, options.temperature, result.notes);
  }
  return result;
}

}  // namespace

SoftmaxResult softmax(const SoftmaxOptions& options, const Request& want) {
  check_options(options);
  std::vector<std::string> notes;
  AnyTensor given = read_softmax_input(options, notes);
  const DType dtype = resolve_precision(options.dtype, {given.dtype()});
  const AnyTensor rounded = rounded_to(dtype, std::move(given), "x", notes);
  SoftmaxResult result = rounded.visit([&](const auto& x) -> SoftmaxResult {
    using T = std::decay_t<decltype(x[0])>;
    if constexpr (std::is_integral_v<T>) {
      return {};  // resolve_precision names floating types only
    } else {
      return softmax_of(options, RowsOf<T>(x), want);
    }
  });
  notes.insert(notes.end(), result.notes.begin(), result.notes.end());
  result.notes = std::move(notes);
  return result;
}

}  // namespace attnlab
