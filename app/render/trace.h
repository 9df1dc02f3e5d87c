#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "render/report.h"

namespace attnlab {

// One quantity worked out: what it is, and what it equals, each on a line of its own below the
// first.
//     scores[0, 1] = scale * raw_scores[0, 1]
//                  = 0.5 * 0.13
//                  = 0.065
struct Equation {
  std::string left;
  std::vector<std::string> rights;
};

// A walk through a calculation in numbered steps. Each has a title, what is done in formula and
// shapes, some of its numbers worked out, and the matrix itself.
class Trace {
 public:
  Trace(const Report& report, const Style& style) : report_(report), style_(style) {}

  // What the report holds; null or nothing when it holds no such thing.
  const ResultRef* find(std::string_view name) const;
  const AnyTensor* matrix(std::string_view name) const;
  const OptionRef* option(std::string_view name) const;
  std::optional<double> number_option(std::string_view name) const;
  const std::vector<ResultRef>& results() const { return report_.results; }
  int digits() const { return style_.digits; }
  // "4 (it)": a query or a key with its token.
  std::string query_name(Index i) const;
  std::string key_name(Index j) const;

  // Text that belongs to no step.
  void paragraph(std::string_view text);
  // The next step, its number put before the title.
  void step(std::string_view title);
  // The next step: a matrix under its title ("weights - how much ...") and shape, with the formula
  // as declared or another one, and below that the same formula with the shapes of its operands.
  void matrix_step(const ResultRef& result, std::string_view formula,
                   const std::vector<Equation>& worked);
  // Parts of a step.
  void line(std::string_view text);
  void equations(const std::vector<Equation>& equations);
  void values(const AnyTensor& matrix, std::string_view declared);
  // What is no step: the numbers that the table prints as well, and rows.
  void finish();
  static bool is_step(const ResultRef& result);

  std::string text() const { return text_; }

 private:
  std::string shapes_of(std::string_view formula) const;

  const Report& report_;
  const Style& style_;
  std::string text_;
  int steps_ = 0;
};

// `formula` with every name in it but those of functions replaced by what `replace` makes of it.
std::string replace_names(std::string_view formula,
                          const std::function<std::string(const std::string&)>& replace);

// The walks of single commands; render_trace chooses by what the report holds.
// q, k and v (of a layer after its projections) to the output: one query and the key it attends
// to most are followed through every step.
std::string trace_attention(const Report& report, const Style& style);
// Logits to their softmax, and the derivative in its two cases i = j and i != j, in the numbers of
// the first row.
std::string trace_softmax(const Report& report, const Style& style);

}  // namespace attnlab
