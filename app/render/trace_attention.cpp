#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "render/rounded_text.h"
#include "render/trace.h"
#include "render/trace_positions.h"
#include "render/worked.h"

namespace attnlab {
namespace {

// The query and the key whose numbers are followed, in the first head.
struct Followed {
  Index query = 0, key = 0;
};

class AttentionTrace {
 public:
  AttentionTrace(const Report& report, const Style& style) : trace_(report, style) { follow(); }

  std::string text() {
    introduce();
    for (const ResultRef& result : trace_.results()) {
      if (Trace::is_step(result)) trace_.matrix_step(result, formula(result), worked(result));
    }
    trace_.finish();
    return trace_.text();
  }

 private:
  // The query that sees the most keys, the first of those, and the key with its largest weight.
  void follow() {
    const AnyTensor* weights = trace_.matrix("weights");
    if (weights == nullptr || weights->size() == 0) return;
    Index most = -1;
    for (Index i = 0; i < weights->shape()[-2]; ++i) {
      const Line row = row_of(*weights, i);
      Index seen = 0, largest = 0;
      for (Index j = 0; j < row.count; ++j) {
        if (row.at(j) > 0) ++seen;
        if (row.at(j) > row.at(largest)) largest = j;
      }
      if (seen > most) followed_ = {i, largest}, most = seen;
    }
  }

  void introduce() {
    trace_.paragraph(
        "Attention(Q, K, V) = softmax(scale Q K^T) V: every query is matched with every key, the\n"
        "matches become weights, and the output is the average of the values under these weights.");
    const AnyTensor* weights = trace_.matrix("weights");
    if (weights == nullptr || weights->size() == 0) return;
    trace_.paragraph(fmt::format("Followed below{}: query {} and the key it attends to most, {}.",
                                 weights->shape().matrices() > 1 ? " in the first head" : "",
                                 trace_.query_name(followed_.query),
                                 trace_.key_name(followed_.key)));
  }

  // A formula speaks of everything there can be; what this run has not is left out: the mask, the
  // softcap and the biases, and x stands for query, key and value in self-attention.
  std::string present(const std::string& name) const {
    static const std::map<std::string, std::string, std::less<>> kInstead = {
        {"masked_scores", "capped_scores"},
        {"capped_scores", "scores"},
        {"normed_q", "q"},
        {"normed_k", "k"},
        {"query", "x"},
        {"key", "memory"},
        {"value", "memory"},
        {"memory", "x"}};
    const auto instead = kInstead.find(name);
    if (trace_.matrix(name) != nullptr || instead == kInstead.end()) return name;
    return present(instead->second);
  }

  // q or k as they meet: rotated, normed or as they are.
  std::string meeting(const std::string& name) const {
    return trace_.matrix("rotated_" + name) != nullptr ? "rotated_" + name
                                                       : present("normed_" + name);
  }

  std::string formula(const ResultRef& result) const {
    std::string text(result.formula);
    for (const char* bias : {"b_q", "b_k", "b_v", "b_o"}) {
      const auto at = text.find(std::string(" + ") + bias);
      if (at != std::string::npos && trace_.matrix(bias) == nullptr) text.erase(at, 6);
    }
    if (trace_.matrix("rotated_q") != nullptr &&
        (result.name == "grad_q" || result.name == "grad_k")) {
      text = fmt::format("rotate_back({})", text);
    }
    // With a memory x is the query alone.
    if (result.name == "grad_x" && trace_.matrix("memory") != nullptr) {
      text.erase(text.find(" + grad_k"));
    }
    // What is matched and averaged is more than k and v where there are a past or own keys.
    const bool attends = result.name == "raw_scores" || result.name == "heads" ||
                         (result.name == "output" && trace_.matrix("concat") == nullptr);
    return replace_names(text, [&](const std::string& name) {
      const bool all = attends && (name == "k" || name == "v") && trace_.matrix(name) != nullptr;
      if (all) return attended(name).name;
      return meets(result.name) && (name == "q" || name == "k") ? meeting(name) : present(name);
    });
  }

  // Whether a matrix comes of queries and keys as they meet, rotated where they are.
  static bool meets(std::string_view name) {
    return name == "raw_scores" || name == "present_k" || name == "grad_q" || name == "grad_k";
  }

  std::vector<Equation> worked(const ResultRef& result) const {
    const std::string_view name = result.name;
    if (result.matrix()->size() == 0) return {};
    if (name == "q") return projection(name, present("query"), followed_.query);
    if (name == "k") return projection(name, present("key"), followed_.key);
    if (name == "v") return projection(name, present("value"), followed_.key);
    if (name == "rotated_q") return rotated_query();
    if (name == "rotated_k") return rotated_key();
    if (name == "raw_scores") return match(*result.matrix());
    if (name == "scores") return scaling(*result.matrix());
    if (name == "capped_scores") return capping(*result.matrix());
    if (name == "masked_scores") return masking(*result.matrix());
    if (name == "weights") return softmax(*result.matrix());
    if (name == "concat") return concatenation(*result.matrix());
    if (name == "output" && trace_.matrix("concat") != nullptr) {
      return row_times_weights(name, followed_.query, "concat", "w_o", "b_o");
    }
    if (name == "output" || name == "heads") return average(name, *result.matrix());
    return {};
  }

  double followed_element(const AnyTensor& matrix, Index column) const {
    return row_of(matrix, followed_.query).at(column);
  }

  // q = x W_q + b_q, one element.
  std::vector<Equation> projection(std::string_view name, const std::string& input,
                                   Index row) const {
    return row_times_weights(name, row, input, fmt::format("w_{}", name),
                             fmt::format("b_{}", name));
  }

  std::vector<Equation> row_times_weights(std::string_view name, Index row,
                                          const std::string& input_name,
                                          const std::string& weight_name,
                                          const std::string& bias_name) const {
    const AnyTensor* input = trace_.matrix(input_name);
    const AnyTensor* weight = trace_.matrix(weight_name);
    const AnyTensor* bias = trace_.matrix(bias_name);
    const AnyTensor& result = *trace_.matrix(name);
    if (input == nullptr || weight == nullptr || weight->shape().rank() != 2 ||
        !has_row(*input, row) || !has_row(result, row)) {
      return {};
    }
    std::string symbols = fmt::format("{}[{}] . {}[:, 0]", input_name, row, weight_name);
    if (bias != nullptr) symbols += fmt::format(" + {}[0]", bias_name);
    return product_equation(entry(name, row, 0), symbols, row_of(*input, row),
                            column_of(*weight, 0),
                            bias == nullptr ? std::nullopt : std::optional(bias->at(0)),
                            row_of(result, row).at(0), trace_.digits());
  }

  static bool has_row(const AnyTensor& tensor, Index row) {
    return tensor.shape().rank() >= 2 && tensor.size() > 0 && row < tensor.shape()[-2];
  }

  // The keys ("k") or values ("v") that are attended to, in the first head.
  struct Attended {
    std::string name;  // "k", "present_k", "concat(k, bias_k, 0)"
    AnyTensor rows;    // [m, d]
    Index given = 0;   // how many are of the sequence, those of its past first
    std::string given_name;
  };

  Attended attended(const std::string& which) const {
    const AnyTensor* present = trace_.matrix("present_" + which);
    const std::string current = which == "k" ? meeting(which) : which;
    const AnyTensor& given = present == nullptr ? *trace_.matrix(current) : *present;
    const AnyTensor* learnt = trace_.matrix("bias_" + which);
    const AnyTensor* scores = trace_.matrix("raw_scores");
    if (scores == nullptr) scores = trace_.matrix("weights");
    const Index m = given.shape()[-2], d = given.shape()[-1];
    const Index all = scores == nullptr ? m : scores->shape()[-1];
    Attended attended{present == nullptr ? current : "present_" + which, {}, m, {}};
    attended.given_name = attended.name;
    Tensor<double> rows({all, d});
    const bool any = given.size() > 0;
    for (Index i = 0; any && i < std::min(all, m) * d; ++i) rows[i] = given.at(i);
    if (learnt != nullptr && all > m) {
      for (Index x = 0; x < d; ++x) rows[m * d + x] = learnt->at(x);
    }
    attended.rows = AnyTensor(std::move(rows)).cast(given.dtype());
    if (all == m) return attended;
    if (learnt != nullptr) attended.name += ", bias_" + which;
    if (all - m > (learnt == nullptr ? 0 : 1)) attended.name += ", 0";
    attended.name = "concat(" + attended.name + ")";
    return attended;
  }

  std::vector<Equation> rotated_query() const {
    const std::optional<Index> position = query_position(trace_, followed_.query);
    if (!position) return {};
    return rotation(trace_, "rotated_q", present("normed_q"), followed_.query, *position);
  }

  // A followed key of the past was rotated before, and one of the layer's own stands nowhere.
  std::vector<Equation> rotated_key() const {
    const AnyTensor* all = trace_.matrix("present_k");
    const Index current = trace_.matrix("k")->shape()[-2];
    const Index past = all == nullptr ? 0 : all->shape()[-2] - current;
    const Index row = followed_.key - past;
    if (row < 0 || row >= current) return {};
    return rotation(trace_, "rotated_k", present("normed_k"), row, followed_.key);
  }

  // q_i . k_j
  std::vector<Equation> match(const AnyTensor& raw_scores) const {
    const std::string query_name = meeting("q");
    const AnyTensor* q = trace_.matrix(query_name);
    const Attended k = attended("k");
    if (!has_row(*q, followed_.query) || !has_row(k.rows, followed_.key)) return {};
    std::string key = fmt::format("{}[{}]", k.given_name, followed_.key);
    if (followed_.key >= k.given) {
      const bool learnt = trace_.matrix("bias_k") != nullptr && followed_.key == k.given;
      key = learnt ? "bias_k" : "0";
    }
    return product_equation(entry("raw_scores", followed_.query, followed_.key),
                            fmt::format("{}[{}] . {}", query_name, followed_.query, key),
                            row_of(*q, followed_.query), row_of(k.rows, followed_.key),
                            std::nullopt, followed_element(raw_scores, followed_.key),
                            trace_.digits());
  }

  std::vector<Equation> scaling(const AnyTensor& scores) const {
    const OptionRef* option = trace_.option("scale");
    const auto* scale = option == nullptr ? nullptr : std::get_if<WordOrNumber*>(&option->value);
    const AnyTensor* raw_scores = trace_.matrix("raw_scores");
    if (scale == nullptr || raw_scores == nullptr) return {};
    const int digits = trace_.digits();
    const Index d_k = trace_.matrix("q")->shape()[-1];
    double factor_value = (*scale)->number;
    Equation rule = {"scale", {factor(factor_value, digits)}};
    if ((*scale)->word == "none") {
      factor_value = 1;
      rule.rights = {"1"};
    } else if ((*scale)->word == "auto") {
      factor_value = 1 / std::sqrt(static_cast<double>(d_k));
      rule.rights = {fmt::format("1/sqrt(d_k) = 1/sqrt({}) = {}", d_k,
                                 significant_text(factor_value, digits))};
    }
    const double raw = followed_element(*raw_scores, followed_.key);
    const double scaled = followed_element(scores, followed_.key);
    if (!(std::abs(factor_value * raw - scaled) <= 0.01 * std::abs(scaled))) return {};
    return {rule,
            {entry("scores", followed_.query, followed_.key),
             {fmt::format("{} * {} = {}", factor(factor_value, digits), factor(raw, digits),
                          significant_text(scaled, digits))}}};
  }

  std::vector<Equation> capping(const AnyTensor& capped) const {
    const std::optional<double> cap = trace_.number_option("softcap");
    const AnyTensor* scores = trace_.matrix("scores");
    if (!cap || scores == nullptr) return {};
    const int digits = trace_.digits();
    const std::string c = significant_text(*cap, digits);
    return {{entry("capped_scores", followed_.query, followed_.key),
             {fmt::format("{} tanh({} / {}) = {}", c,
                          factor(followed_element(*scores, followed_.key), digits), c,
                          significant_text(followed_element(capped, followed_.key), digits))}}};
  }

  std::vector<Equation> masking(const AnyTensor& masked) const {
    const Line row = row_of(masked, followed_.query);
    Index seen = 0;
    for (Index j = 0; j < row.count; ++j) seen += std::isinf(row.at(j)) && row.at(j) < 0 ? 0 : 1;
    std::vector<Equation> equations;
    if (followed_.key < attended("k").given) {
      equations = linear_bias(trace_, present("capped_scores"), followed_.query, followed_.key);
    }
    // Linear biases alone hide nothing.
    if (!equations.empty() && seen == row.count) return equations;
    equations.push_back({"exp(-inf)",
                         {fmt::format("0, no weight; query {} sees {} of {} keys", followed_.query,
                                      seen, row.count)}});
    return equations;
  }

  // exp of every score over their sum, one row.
  std::vector<Equation> softmax(const AnyTensor& weights) const {
    const std::string name = present("masked_scores");
    const AnyTensor* scores = trace_.matrix(name);
    if (scores == nullptr || followed_element(weights, followed_.key) == 0) return {};
    const int digits = trace_.digits();
    const Line row = row_of(*scores, followed_.query);
    double largest = row.at(0), sum = 0;
    for (Index j = 0; j < row.count; ++j) largest = std::fmax(largest, row.at(j));
    std::vector<std::string> exponentials;
    for (Index j = 0; j < row.count; ++j) {
      const double exponential = std::exp(row.at(j) - largest);
      sum += exponential;
      exponentials.push_back(significant_text(exponential, digits));
    }
    const std::string exponential =
        significant_text(std::exp(row.at(followed_.key) - largest), digits);
    const std::string shift = factor(largest, digits);
    return {{"max", {significant_text(largest, digits)}},
            {fmt::format("exp({}[{}] - max)", name, followed_.query), {list_text(exponentials)}},
            {"sum", {significant_text(sum, digits)}},
            {entry("weights", followed_.query, followed_.key),
             {fmt::format("exp({} - {}) / sum = {} / {} = {}",
                          significant_text(row.at(followed_.key), digits), shift, exponential,
                          significant_text(sum, digits),
                          significant_text(followed_element(weights, followed_.key), digits))}}};
  }

  // The first element of the output: a sum over the keys.
  std::vector<Equation> average(std::string_view name, const AnyTensor& output) const {
    const AnyTensor* weights = trace_.matrix("weights");
    if (weights == nullptr || trace_.matrix("v") == nullptr) return {};
    const Attended v = attended("v");
    if (v.rows.size() == 0 || !has_row(output, followed_.query)) return {};
    return product_equation(entry(name, followed_.query, 0),
                            fmt::format("weights[{}] . {}[:, 0]", followed_.query, v.name),
                            row_of(*weights, followed_.query), column_of(v.rows, 0), std::nullopt,
                            followed_element(output, 0), trace_.digits());
  }

  std::vector<Equation> concatenation(const AnyTensor& concat) const {
    const AnyTensor* heads = trace_.matrix("heads");
    if (heads == nullptr || !has_row(*heads, 0)) return {};
    const Index width = heads->shape()[-1];
    std::vector<std::string> parts;
    for (Index h = 0; h * width < concat.shape()[-1]; ++h) {
      parts.push_back(
          fmt::format("columns {} to {} from head {}", h * width, (h + 1) * width - 1, h));
    }
    return {{"concat", {list_text(parts)}}};
  }

  Trace trace_;
  Followed followed_;
};

}  // namespace

std::string trace_attention(const Report& report, const Style& style) {
  return AttentionTrace(report, style).text();
}

}  // namespace attnlab
