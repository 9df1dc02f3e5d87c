#include "render/trace_positions.h"

#include <fmt/format.h>

#include <cmath>

#include "attnlab/attention/alibi.h"
#include "render/rounded_text.h"
#include "render/worked.h"

namespace attnlab {
namespace {

bool is_close(double a, double b) { return std::abs(a - b) <= 0.01 * std::abs(b) + 1e-12; }

bool is_set(const OptionRef* option) { return option != nullptr && !value_of(*option).empty(); }

}  // namespace

std::optional<Index> query_position(const Trace& trace, Index i) {
  const AnyTensor *q = trace.matrix("q"), *k = trace.matrix("k");
  if (q == nullptr || k == nullptr) return std::nullopt;
  if (const OptionRef* offset = trace.option("offset"); is_set(offset)) {
    return **std::get<std::optional<Index>*>(offset->value) + i;
  }
  const AnyTensor* present = trace.matrix("present_k");
  const Index past = present == nullptr ? 0 : present->shape()[-2] - k->shape()[-2];
  const OptionRef* align = trace.option("align");
  const std::string name = align == nullptr ? "auto" : value_of(*align);
  if (name == "auto") return past + i;
  if (name == "top-left") return i;
  if (is_set(trace.option("key_lengths"))) return std::nullopt;
  return past + k->shape()[-2] - q->shape()[-2] + i;
}

std::vector<Equation> rotation(const Trace& trace, std::string_view name, std::string_view source,
                               Index row, Index position) {
  const AnyTensor *before = trace.matrix(source), *after = trace.matrix(name);
  if (before == nullptr || after == nullptr || row >= before->shape()[-2]) return {};
  const Line from = row_of(*before, row), to = row_of(*after, row);
  const Index half = from.count / 2;
  // The first pair turns by an angle of 1 a position, whatever theta is.
  const auto angle = static_cast<double>(position);
  const double cosine = std::cos(angle), sine = std::sin(angle);
  if (!is_close(from.at(0) * cosine - from.at(half) * sine, to.at(0))) return {};
  const int digits = trace.digits();
  return {{entry(name, row, 0),
           {fmt::format("{} cos({}) - {} sin({})", entry(source, row, 0), position,
                        entry(source, row, half), position),
            fmt::format("{}*{} - {}*{}", factor(from, 0, digits), factor(cosine, digits),
                        factor(from, half, digits), factor(sine, digits)),
            significant_text(*after, to.index(0), digits)}}};
}

std::vector<Equation> linear_bias(const Trace& trace, std::string_view before, Index query,
                                  Index key) {
  const AnyTensor *scores = trace.matrix(before), *masked = trace.matrix("masked_scores");
  const OptionRef* option = trace.option("alibi");
  const auto* given = option == nullptr ? nullptr : std::get_if<bool*>(&option->value);
  const std::optional<Index> position = query_position(trace, query);
  if (given == nullptr || !**given || scores == nullptr || masked == nullptr || !position) {
    return {};
  }
  const Index heads = masked->shape().rank() > 2 ? masked->shape()[-3] : 1;
  const double slope = alibi_slopes(heads).front();
  const Index distance = std::abs(*position - key);
  const Line from = row_of(*scores, query), to = row_of(*masked, query);
  if (!is_close(from.at(key) - slope * static_cast<double>(distance), to.at(key))) return {};
  const int digits = trace.digits();
  return {{entry("masked_scores", query, key),
           {fmt::format("{} - slope * |{} - {}|", entry(before, query, key), *position, key),
            fmt::format("{} - {} * {}", factor(from, key, digits), significant_text(slope, digits),
                        distance),
            significant_text(*masked, to.index(key), digits)}}};
}

}  // namespace attnlab
