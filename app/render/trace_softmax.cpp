#include <fmt/format.h>

#include <cmath>

#include "render/elide.h"
#include "render/rounded_text.h"
#include "render/trace.h"
#include "render/worked.h"

namespace attnlab {
namespace {

constexpr Index kMostEntries = 6;

// The numbers are those of the first row; e_i = exponentials[i], s_i = softmax[i].
class SoftmaxTrace {
 public:
  SoftmaxTrace(const Report& report, const Style& style)
      : trace_(report, style),
        e_(row_of(*trace_.matrix("exponentials"), 0)),
        s_(row_of(*trace_.matrix("softmax"), 0)) {}

  std::string text() {
    introduce();
    for (const ResultRef& result : trace_.results()) {
      if (Trace::is_step(result)) trace_.matrix_step(told(result), formula(result), worked(result));
    }
    trace_.finish();
    return trace_.text();
  }

 private:
  std::string e(Index i) const {
    return significant_text(*e_.tensor, e_.index(i), trace_.digits());
  }
  std::string s(Index i) const {
    return significant_text(*s_.tensor, s_.index(i), trace_.digits());
  }

  // A naive run takes the formula as it stands; otherwise the largest logit is subtracted.
  bool naive() const {
    const OptionRef* option = trace_.option("method");
    const auto* method = option == nullptr ? nullptr : std::get_if<ChoiceListRef>(&option->value);
    if (method == nullptr) return false;
    const std::vector<int> chosen = method->get(method->object);
    return chosen.size() == 1 && method->names[static_cast<std::size_t>(chosen[0])] == "naive";
  }

  // The result and formula of a step without what is said of the other method.
  ResultRef told(ResultRef result) const {
    if (!naive()) return result;
    if (result.name == "scaled") result.help = "the logits at the temperature";
    if (result.name == "exponentials") result.help = "positive, however large";
    return result;
  }
  std::string_view formula(const ResultRef& result) const {
    if (result.name != "scaled" || result.formula.empty()) return result.formula;
    return naive() ? "x / T" : "(x - max x) / T";
  }

  void introduce() {
    std::string text =
        "softmax(z)_i = e^z_i / (e^z_0 + e^z_1 + ...): positive numbers with the sum 1, the "
        "larger\n"
        "the larger z_i. ";
    text += naive() ? "Taken literally, as here, the exponentials of large z_i can overflow, and\n"
                      "those of very negative ones all vanish."
                    : "The same c taken from every z_i cancels, so the largest is taken and no\n"
                      "exponential can overflow.";
    trace_.paragraph(text);
    if (const OptionRef* option = trace_.option("values")) {
      const auto* values = std::get_if<std::vector<double>*>(&option->value);
      if (values != nullptr && !(*values)->empty()) {
        std::vector<std::string> numbers;
        for (const double x : **values) numbers.push_back(significant_text(x, trace_.digits()));
        trace_.equations({{"x", {list_text(numbers)}}});
        trace_.line("");
      }
    }
    if (s_.count < s_.tensor->size()) trace_.paragraph("Worked out below: the first row.");
  }

  std::vector<Equation> worked(const ResultRef& result) const {
    if (s_.count == 0 || s_.tensor->size() == 0) return {};
    if (result.name == "exponentials") return exponentials();
    if (result.name == "sums") return sum();
    if (result.name == "softmax") return division();
    if (result.name == "jacobian_diagonal") return same_index(row_of(*result.matrix(), 0));
    if (result.name == "jacobian_off_diagonal") return different_indices(*result.matrix());
    if (result.name == "jacobian") return {{"delta_ij", {"1 if i = j, else 0"}}};
    return {};
  }

  std::vector<Equation> exponentials() const {
    const AnyTensor* scaled = trace_.matrix("scaled");
    if (scaled == nullptr) return {};
    const Line z = row_of(*scaled, 0);
    return each([&](Index i) {
      return Equation{fmt::format("e_{}", i),
                      {fmt::format("exp({}) = {}",
                                   significant_text(*scaled, z.index(i), trace_.digits()), e(i))}};
    });
  }

  std::vector<Equation> sum() const {
    std::vector<std::string> terms;
    for (Index i = 0; i < e_.count; ++i) terms.push_back(e(i));
    return {{"sum", {sum_text(terms), sum_value()}}};
  }

  std::string sum_value() const {
    const AnyTensor* sums = trace_.matrix("sums");
    return sums == nullptr ? "sum" : significant_text(*sums, 0, trace_.digits());
  }

  std::vector<Equation> division() const {
    return each([&](Index i) {
      return Equation{fmt::format("s_{}", i),
                      {fmt::format("{} / {} = {}", e(i), sum_value(), s(i))}};
    });
  }

  // The quotient rule on e_i / sum, where d sum / d z_j = e_j.
  std::vector<Equation> same_index(const Line& diagonal) const {
    std::vector<Equation> equations = {{"d e_i / d z_i", {"e_i"}},
                                       {"d s_i / d z_i",
                                        {"(e_i sum - e_i e_i) / sum^2   (quotient rule)",
                                         "(e_i / sum) (sum - e_i) / sum", "s_i (1 - s_i)"}}};
    for (Equation& number : each([&](Index i) {
           return Equation{fmt::format("d s_{} / d z_{}", i, i),
                           {fmt::format("{} (1 - {}) = {}", s(i), s(i), value(diagonal, i))}};
         })) {
      equations.push_back(std::move(number));
    }
    return equations;
  }

  std::vector<Equation> different_indices(const AnyTensor& jacobian) const {
    if (s_.count < 2) return {};
    std::vector<Equation> equations = {
        {"d e_i / d z_j", {"0"}},
        {"d s_i / d z_j",
         {"(0 sum - e_i e_j) / sum^2   (quotient rule)", "-(e_i / sum) (e_j / sum)", "-s_i s_j"}}};
    const std::size_t most = equations.size() + kMostEntries;
    for (Index i = 0; i < s_.count; ++i) {
      for (Index j = i + 1; j < s_.count && equations.size() < most; ++j) {
        equations.push_back(
            {fmt::format("d s_{} / d z_{}", i, j),
             {fmt::format("-{} * {} = {}", s(i), s(j), value(row_of(jacobian, i), j))}});
      }
    }
    return equations;
  }

  std::string value(const Line& line, Index i) const {
    return significant_text(*line.tensor, line.index(i), trace_.digits());
  }

  // An equation for every entry of the row, of long rows for the first and last.
  template <class F>
  std::vector<Equation> each(F&& equation) const {
    std::vector<Equation> equations;
    for (const Index i : elided(s_.count, kMostEntries)) {
      if (i != kGap) equations.push_back(equation(i));
    }
    return equations;
  }

  Trace trace_;
  Line e_, s_;
};

}  // namespace

std::string trace_softmax(const Report& report, const Style& style) {
  return SoftmaxTrace(report, style).text();
}

}  // namespace attnlab
