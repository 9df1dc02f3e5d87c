#include "render/trace.h"

#include <algorithm>
#include <cctype>

#include "render/blocks.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

// A long sum broken before its pluses, continued under its first term.
void append_wrapped(std::string line, std::string_view right, int width, std::string& out) {
  const auto margin = static_cast<std::size_t>(display_width(line));
  bool first = true;
  while (!right.empty()) {
    const auto plus = right.find(" + ", 1);
    const std::string_view term = right.substr(0, plus);
    if (!first && display_width(line) + display_width(term) > width) {
      out += line + "\n";
      line = std::string(margin, ' ');
      right.remove_prefix(1);  // the space before the plus
      first = true;
      continue;
    }
    line += term;
    right.remove_prefix(term.size());
    first = false;
  }
  out += line + "\n";
}

std::string with_name(Index i, const std::vector<std::string>& names) {
  std::string text = std::to_string(i);
  if (i < std::ssize(names)) text += " (" + clip(names[static_cast<std::size_t>(i)], 24) + ")";
  return text;
}

}  // namespace

std::string replace_names(std::string_view formula,
                          const std::function<std::string(const std::string&)>& replace) {
  std::string out, name;
  for (std::size_t i = 0; i <= formula.size(); ++i) {
    const char c = i < formula.size() ? formula[i] : '\0';
    if (name.empty() ? starts_name(c) : continues_name(c)) {
      name += c;
      continue;
    }
    // A function is no matrix, even where one has its name.
    if (!name.empty()) out += c == '(' ? name : replace(name);
    name.clear();
    if (i < formula.size()) out += c;
  }
  return out;
}

const ResultRef* Trace::find(std::string_view name) const {
  const auto found = std::find_if(report_.results.begin(), report_.results.end(),
                                  [&](const ResultRef& result) { return result.name == name; });
  return found == report_.results.end() ? nullptr : &*found;
}

const AnyTensor* Trace::matrix(std::string_view name) const {
  const ResultRef* result = find(name);
  return result == nullptr ? nullptr : result->matrix();
}

const OptionRef* Trace::option(std::string_view name) const {
  const auto found = std::find_if(report_.options.begin(), report_.options.end(),
                                  [&](const OptionRef& option) { return option.name == name; });
  return found == report_.options.end() ? nullptr : &*found;
}

std::optional<double> Trace::number_option(std::string_view name) const {
  const OptionRef* found = option(name);
  if (found == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<double*>(&found->value)) return **value;
  if (const auto* value = std::get_if<std::optional<double>*>(&found->value)) return **value;
  return std::nullopt;
}

std::string Trace::query_name(Index i) const { return with_name(i, style_.row_names); }
std::string Trace::key_name(Index j) const { return with_name(j, style_.column_names); }

void Trace::paragraph(std::string_view text) {
  text_ += text;
  text_ += "\n\n";
}

void Trace::step(std::string_view title) {
  if (steps_ > 0) text_ += "\n";
  const std::string number = std::to_string(++steps_);
  text_ += bold(number + ". " + std::string(title), style_.color) + "\n";
}

void Trace::line(std::string_view text) {
  if (!text.empty()) text_ += "  ";
  text_ += text;
  text_ += '\n';
}

void Trace::equations(const std::vector<Equation>& equations) {
  int left = 0;
  for (const Equation& equation : equations) left = std::max(left, display_width(equation.left));
  for (const Equation& equation : equations) {
    std::string start = "  " + pad_right(equation.left, left);
    for (const std::string& right : equation.rights) {
      append_wrapped(start + " = ", right, style_.width, text_);
      start = std::string(static_cast<std::size_t>(left) + 2, ' ');
    }
  }
}

void Trace::values(const AnyTensor& matrix, std::string_view declared) {
  text_ += matrix_text(matrix, declared, style_);
}

std::string Trace::shapes_of(std::string_view formula) const {
  // Formulas of single elements (s_i) have no shapes.
  if (formula.find("_i") != std::string_view::npos) return std::string(formula);
  return replace_names(formula, [this](const std::string& name) {
    const AnyTensor* operand = matrix(name);
    return operand == nullptr || operand->shape().rank() == 0 ? name : operand->shape().str();
  });
}

void Trace::matrix_step(const ResultRef& result, std::string_view formula,
                        const std::vector<Equation>& worked) {
  const AnyTensor& matrix = *result.matrix();
  std::string title(result.name);
  if (!result.help.empty()) title += " - " + std::string(result.help);
  step(title + "   " + shape_text(matrix));
  if (!formula.empty()) {
    std::vector<Equation> lines = {{std::string(result.name), {std::string(formula)}}};
    const std::string shapes = shapes_of(formula);
    if (shapes != formula) lines.push_back({matrix.shape().str(), {shapes}});
    equations(lines);
  }
  equations(worked);
  text_ += '\n';
  values(matrix, result.shape);
}

bool Trace::is_step(const ResultRef& result) {
  return result.matrix() != nullptr && !(is_scalar(result) && result.shown);
}

void Trace::finish() {
  std::vector<ResultRef> scalars;
  for (const ResultRef& result : report_.results) {
    const auto* rows = std::get_if<RowsRef>(&result.value);
    if (rows != nullptr && rows->count > 0) {
      if (!text_.empty()) text_ += '\n';
      text_ += rows_block(result, *rows, style_);
    }
    const bool absent = result.is_matrix() && result.matrix() == nullptr;
    if (is_scalar(result) && !is_step(result) && !absent) scalars.push_back(result);
  }
  if (scalars.empty()) return;
  if (!text_.empty()) text_ += '\n';
  text_ += scalar_block(scalars, style_);
}

std::string render_trace(const Report& report, const Style& style) {
  Trace trace(report, style);
  if (trace.matrix("exponentials") != nullptr && trace.matrix("softmax") != nullptr) {
    return trace_softmax(report, style);
  }
  if (trace.matrix("q") != nullptr && trace.matrix("k") != nullptr) {
    return trace_attention(report, style);
  }
  for (const ResultRef& result : report.results) {
    if (Trace::is_step(result)) trace.matrix_step(result, result.formula, {});
  }
  trace.finish();
  return trace.text();
}

}  // namespace attnlab
