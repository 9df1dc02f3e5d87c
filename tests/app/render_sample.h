#pragma once

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "render/report.h"

namespace attnlab::test {

// A result with a value of every kind, as no single command has it.
struct SampleRow {
  Index d_k = 0;
  std::string scaling = {};
  double variance = 0;
  std::optional<double> theory = {};
  std::optional<Index> keys = {};
  bool exact = false;
  std::vector<double> top = {};

  static constexpr auto fields() {
    using R = SampleRow;
    return std::tuple(
        field("d_k", &R::d_k, "width"), field("scaling", &R::scaling, "factor"),
        field("variance", &R::variance, "of the scores", {.unit = "nats^2"}),
        field("theory", &R::theory, "expected variance"), field("keys", &R::keys, "keys"),
        field("exact", &R::exact, "whether the theory is"), field("top", &R::top, "largest"));
  }
};

struct SampleResult {
  std::optional<AnyTensor> weights, output, absent;
  Index empty_rows = 1;
  double entropy = 0.8323955;
  std::optional<double> undefined;

  static constexpr auto fields() {
    using R = SampleResult;
    return std::tuple(
        field("weights", &R::weights, "how much of each value a query takes",
              {.formula = "softmax(scores)", .shape = "[.., heads, n, m]"}),
        field("output", &R::output, "the averages",
              {.formula = "weights v", .shape = "[.., heads, n, d_v]", .shown = true}),
        field("absent", &R::absent, "not computed"),
        field("empty_rows", &R::empty_rows, "rows without a key"),
        field("entropy", &R::entropy, "of the first row", {.unit = "nats"}),
        field("undefined", &R::undefined, "a variance of one sample"));
  }
};

struct SampleRows {
  std::vector<SampleRow> rows;
  double slope = 1;

  static constexpr auto fields() {
    using R = SampleRows;
    return std::tuple(field("rows", &R::rows, "one a point"), field("slope", &R::slope, "fit"));
  }
};

struct SampleOptions {
  Index n = 2;
  std::optional<double> softcap;
  Index threads = 0;

  static constexpr auto fields() {
    using O = SampleOptions;
    return std::tuple(field("n", &O::n, "queries"), field("softcap", &O::softcap, "cap"),
                      field("threads", &O::threads, "workers", {.echo = false}));
  }
};

inline SampleResult sample_result() {
  SampleResult result;
  result.weights = AnyTensor(Tensor<double>({2, 3}, {0.25, 0.75, 0, 1. / 3, 1. / 3, 1. / 3}));
  result.output = AnyTensor(Tensor<float>({2, 2}, {0.1f, -2.5f, 0, 100.125f}));
  return result;
}

inline SampleRows sample_rows() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  SampleRows result;
  result.rows.push_back({1, "none", 1. / 3, 1.0, 8, true, {0.5, -0.0}});
  result.rows.push_back({1024, "softcap:50, \"x\"", nan, std::nullopt, std::nullopt, false, {}});
  return result;
}

inline int longest_line(const std::string& text) {
  std::size_t longest = 0, start = 0;
  for (std::size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    longest = std::max(longest, end - start);
  }
  return static_cast<int>(longest);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace attnlab::test
