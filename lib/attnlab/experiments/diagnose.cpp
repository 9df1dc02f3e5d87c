#include "attnlab/experiments/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attnlab/attention/alibi.h"
#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/core/error.h"
#include "attnlab/experiments/candidate.h"
#include "attnlab/experiments/mistake_search.h"
#include "attnlab/experiments/rounding.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

// What all mistakes, one after the other, may cost: about a minute on one core.
constexpr double kLargestWork = 0x1p32;

void read_once(TensorSource& source, std::string_view name, std::vector<std::string>& notes) {
  if (source.empty()) return;
  source.values = read_tensor(source, name, notes);
  source.path.clear();
}

AttentionVariant asked_for(const DiagnoseOptions& options, RawAttentionInputs raw) {
  AttentionVariant asked;
  asked.packed = raw.layout.packed;
  AttentionInputs<double> inputs = split_attention_inputs<double>(options.sizes, std::move(raw));
  const AttentionSettings settings =
      attention_settings(options.scores, options.run, inputs.q.shape()[3]);
  asked.q = std::make_shared<const Tensor<double>>(std::move(inputs.q));
  asked.k = std::make_shared<const Tensor<double>>(std::move(inputs.k));
  asked.v = std::make_shared<const Tensor<double>>(std::move(inputs.v));
  asked.past = inputs.past;
  asked.scale = settings.scale;
  asked.softcap = settings.softcap;
  asked.dropout = settings.dropout;
  asked.seed = settings.seed;
  asked.mask = options.mask;
  asked.positions.rope_theta = options.positions.rope_theta;
  if (options.positions.alibi) asked.positions.slopes = alibi_slopes(asked.heads());
  return asked;
}

void require_small(const AttentionVariant& asked) {
  if (asked.work() <= kLargestWork) return;
  throw InputError(
      "", "q", asked.q->shape().str(),
      fmt::format("with {} keys every mistake would take {:.2g} operations, need at most {:.2g}: "
                  "give some of the batch entries, heads or rows",
                  asked.keys(), asked.work(), kLargestWork));
}

// The library's own output in `dtype`, [batch, heads, n, d_v].
Tensor<double> attended(const DiagnoseOptions& options, RawAttentionInputs raw, DType dtype,
                        std::vector<std::string>& notes) {
  return visit_compute_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AttentionInputs<T> inputs = split_attention_inputs<T>(options.sizes, std::move(raw));
    const Shape& q = inputs.q.shape();
    const Mask mask = make_mask(options.mask, options.positions, q[0], q[1], q[2],
                                inputs.k.shape()[2], inputs.past, notes);
    rotate_inputs(inputs, options.positions, mask, options.run.threads);
    const AttentionSettings settings = attention_settings(options.scores, options.run, q[3]);
    AttentionResult<T> result = scaled_dot_product(inputs.q, inputs.k, inputs.v, mask, settings);
    return AnyTensor(std::move(result.output)).cast(dtype).cast<double>();
  });
}

Tensor<double> output_of(const AttentionVariant& variant) {
  const Index d_v = variant.v->shape()[3];
  auto output =
      Tensor<double>::uninitialized({variant.batch(), variant.heads(), variant.queries(), d_v});
  visit_rows(variant, row_blocks(variant), [&](Index row, std::span<const double> values) {
    std::copy(values.begin(), values.end(), output.data() + row * d_v);
    return true;
  });
  return output;
}

double default_tolerance(const Tensor<double>& attended, const Tensor<double>& exact, DType dtype) {
  double error = 0, largest = 0;
  for (Index i = 0; i < exact.size(); ++i) {
    const double distance = std::abs(attended[i] - exact[i]);
    if (std::isfinite(distance)) error = std::max(error, distance);
    if (std::isfinite(exact[i])) largest = std::max(largest, std::abs(exact[i]));
  }
  return std::max(4 * error, 4 * unit_roundoff(dtype) * largest);
}

DiagnoseRow row_of(const Finding& finding, const AttentionVariant& asked) {
  DiagnoseRow row;
  row.mistake = finding.name();
  row.max_abs_error = finding.difference.max_abs_error;
  row.rms_error = finding.difference.rms();
  row.relative_norm = finding.difference.relative_norm;
  if (finding.difference.departure) row.rows_apart = finding.difference.departure->rows_apart;
  row.explains = finding.explains;
  row.as_asked = finding.as_asked;
  row.description = finding.found(asked);
  return row;
}

// The names of those after the first, of many the first few.
std::string others_that_explain(const std::vector<Finding>& findings) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < findings.size() && findings[i].explains; ++i) {
    names.push_back(findings[i].name());
  }
  const std::size_t more = names.size() - std::min(names.size(), kMost);
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string verdict(const std::vector<Finding>& findings, const AttentionVariant& asked) {
  const Finding& best = findings.front();
  const double error = best.difference.max_abs_error;
  if (best.mistakes.empty()) {
    return best.explains
               ? fmt::format("equals what you asked for to {:.2g}", error)
               : "follows no mistake known here, nor any two of them, and is nearest to what you "
                 "asked for";
  }
  if (!best.explains) {
    return fmt::format(
        "follows no mistake known here, nor any two of them; the nearest is "
        "attention with {}, to {:.2g}",
        best.found(asked), error);
  }
  if (best.rounding) {
    return fmt::format("is as far from {} (root mean square {:.2g}) as {} take it ({:.2g})",
                       best.mistakes.size() > 1 ? "attention with " + best.found_before(asked)
                                                : "what you asked for",
                       best.rounding->candidate, best.last_found(asked), best.rounding->model);
  }
  std::string text = fmt::format("equals attention with {} to {:.2g}; you asked for {}",
                                 best.found(asked), error, best.asked(asked));
  if (const std::string others = others_that_explain(findings); !others.empty()) {
    text += "; on these inputs the same as " + others;
  }
  return text;
}

void describe(std::vector<Finding> findings, const AttentionVariant& asked,
              DiagnoseResult& result) {
  const Finding correct = findings.front();
  // Stable: those that explain stay in the order of the table.
  std::stable_sort(findings.begin(), findings.end(), nearer);
  const Finding& best = findings.front();
  result.equal = correct.explains;
  result.verdict = verdict(findings, asked);
  if (best.explains) {
    for (const Mistake* mistake : best.mistakes) result.found.emplace_back(mistake->name);
  }
  const Finding& from = best.explains ? correct : best;
  if (const auto& departure = from.difference.departure; departure && !result.equal) {
    result.departs_from = from.name();
    result.batch = departure->batch;
    result.head = departure->head;
    result.row = departure->row;
    result.column = departure->column;
    result.tile = departure->tile();
    result.verdict +=
        fmt::format(". It departs from {} {}",
                    from.mistakes.empty() ? "what you asked for" : "that", departure->text());
  }
  std::vector<std::string> same;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    DiagnoseRow row = row_of(findings[i], asked);
    row.rank = static_cast<Index>(i) + 1;
    const bool is_correct = findings[i].mistakes.empty();
    if (row.as_asked && !is_correct) same.push_back(row.mistake);
    result.rows.insert(is_correct ? result.rows.begin() : result.rows.end(), std::move(row));
  }
  if (!same.empty()) {
    result.notes.push_back(
        fmt::format("these inputs cannot tell what you asked for from {}", fmt::join(same, ", ")));
  }
}

}  // namespace

DiagnoseResult diagnose(const DiagnoseOptions& given, const Request& /*want*/) {
  if (given.candidate.empty()) {
    throw InputError("", "candidate", "", "is needed: the output to be explained");
  }
  DiagnoseResult result;
  DiagnoseOptions options = given;
  const RawAttentionInputs raw = read_attention_inputs(
      options.query_key, options.value, options.sizes, options.run.seed, result.notes);
  const AnyTensor candidate = read_tensor(options.candidate, "candidate", result.notes);
  read_once(options.mask.mask, "mask", result.notes);
  read_once(options.mask.key_lengths, "key_lengths", result.notes);

  const AttentionVariant asked = asked_for(options, raw);
  require_small(asked);
  const DType dtype = narrower(raw.dtype, candidate.dtype());
  const Tensor<double> attended_output = attended(options, raw, dtype, result.notes);
  const Tensor<double> exact = output_of(asked);
  result.tolerance = options.tolerance.value_or(default_tolerance(attended_output, exact, dtype));
  const Candidate looked_at(
      raw.layout.split_output(candidate.cast<double>(), exact.shape(), "candidate"),
      result.tolerance);
  describe(find_mistakes(asked, looked_at, exact, options.run.threads, result.notes), asked,
           result);
  return result;
}

}  // namespace attnlab
