#include <fmt/format.h>

#include <cmath>

#include "render/elide.h"
#include "render/rounded_text.h"
#include "render/trace.h"
#include "render/worked.h"

namespace attnlab {
namespace {

constexpr Index kMostEntries = 6;

// The first row, whose numbers are worked out.
class SoftmaxTrace {
 public:
  SoftmaxTrace(const Report& report, const Style& style)
      : trace_(report, style),
        x_(row_of(*trace_.matrix("x"), 0)),
        s_(row_of(*trace_.matrix("softmax"), 0)),
        temperature_(trace_.number_option("temperature").value_or(1)) {}

  std::string text() {
    trace_.paragraph(
        "softmax(x)_i = e^x_i / S with S = e^x_0 + ... + e^x_(n-1): positive numbers that sum to "
        "1.");
    if (x_.count < trace_.matrix("x")->size()) trace_.paragraph("Followed below: the first row.");
    trace_.matrix_step(*trace_.find("x"), "", {});
    exponentials();
    trace_.matrix_step(*trace_.find("softmax"), trace_.find("softmax")->formula, division());
    derivative();
    for (const ResultRef& result : trace_.results()) {
      const bool walked = result.name == "x" || result.name == "softmax";
      if (!walked && result.matrix() != nullptr) trace_.matrix_step(result, result.formula, {});
    }
    trace_.scalars();
    return trace_.text();
  }

 private:
  std::string number(double value) const { return significant_text(value, trace_.digits()); }
  std::string s(Index i) const { return factor(s_, i, trace_.digits()); }

  void exponentials() {
    trace_.step("exponentials - every input less the largest, so that none can overflow");
    trace_.line("e^(x_i - c) / sum of e^(x_j - c) is the same for every c: the shift cancels");
    if (temperature_ != 1) {
      trace_.line("x stands for x / " + number(temperature_) + ", the temperature, from here on");
    }
    double largest = x_.at(0);
    for (Index i = 0; i < x_.count; ++i) largest = std::fmax(largest, x_.at(i));
    std::vector<std::string> exponentials;
    for (Index i = 0; i < x_.count; ++i) {
      exponentials_.push_back(std::exp((x_.at(i) - largest) / temperature_));
      sum_ += exponentials_.back();
      exponentials.push_back(number(exponentials_.back()));
    }
    trace_.equations({{"max x", {number(largest / temperature_)}},
                      {"e^(x - max)", {list_text(exponentials)}},
                      {"S, their sum", {sum_text(exponentials), number(sum_)}}});
  }

  std::vector<Equation> division() const {
    std::vector<Equation> equations;
    for (const Index i : elided(x_.count, kMostEntries)) {
      if (i == kGap) continue;
      equations.push_back(
          {fmt::format("s_{}", i),
           {fmt::format("{} / {} = {}", number(exponentials_[static_cast<std::size_t>(i)]),
                        number(sum_), s(i))}});
    }
    return equations;
  }

  // The computed Jacobian where there is one: it keeps what s_i (1 - s_i) loses near 0 and 1.
  double jacobian(Index i, Index j) const {
    const AnyTensor* jacobian = trace_.matrix("jacobian");
    if (jacobian != nullptr && temperature_ == 1) return row_of(*jacobian, i).at(j);
    return i == j ? s_.at(i) * others(i) : -s_.at(i) * s_.at(j);
  }

  double others(Index i) const {
    double sum = 0;
    for (Index j = 0; j < s_.count; ++j) sum += j == i ? 0 : s_.at(j);
    return sum;
  }

  void derivative() {
    trace_.step("derivative - how output i moves with input j");
    trace_.line("the quotient rule on s_i = e^x_i / S, where dS/dx_j = e^x_j:");
    trace_.line("ds_i/dx_j = (d(e^x_i)/dx_j S - e^x_i e^x_j) / S^2");
    trace_.line("");
    trace_.line("case i = j: d(e^x_i)/dx_i = e^x_i");
    trace_.line("  (e^x_i S - e^x_i e^x_i) / S^2 = e^x_i/S (S - e^x_i)/S = s_i (1 - s_i)");
    trace_.equations(same_index());
    if (s_.count > 1) {
      trace_.line("");
      trace_.line("case i != j: e^x_i does not depend on x_j, d(e^x_i)/dx_j = 0");
      trace_.line("  (0 S - e^x_i e^x_j) / S^2 = -(e^x_i/S) (e^x_j/S) = -s_i s_j");
      trace_.equations(different_indices());
    }
    trace_.line("");
    trace_.line("both in one: ds_i/dx_j = s_i (delta_ij - s_j), delta_ij = 1 if i = j, else 0");
  }

  static std::string derivative_of(Index i, Index j) { return fmt::format("  ds_{}/dx_{}", i, j); }

  std::vector<Equation> same_index() const {
    std::vector<Equation> equations;
    for (const Index i : elided(s_.count, kMostEntries)) {
      if (i == kGap) continue;
      equations.push_back({derivative_of(i, i),
                           {fmt::format("{} (1 - {}) = {}", s(i), s(i), number(jacobian(i, i)))}});
    }
    return equations;
  }

  std::vector<Equation> different_indices() const {
    std::vector<Equation> equations;
    for (Index i = 0; i < s_.count; ++i) {
      for (Index j = i + 1; j < s_.count && std::ssize(equations) < kMostEntries; ++j) {
        equations.push_back({derivative_of(i, j),
                             {fmt::format("-{} * {} = {}", s(i), s(j), number(jacobian(i, j)))}});
      }
    }
    return equations;
  }

  Trace trace_;
  Line x_, s_;
  double temperature_;
  std::vector<double> exponentials_;
  double sum_ = 0;
};

}  // namespace

std::string trace_softmax(const Report& report, const Style& style) {
  return SoftmaxTrace(report, style).text();
}

}  // namespace attnlab
