#include "attnlab/experiments/scaling_list.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

// Beyond these the moments of scores would leave float64.
constexpr double kSmallest = 1e-9, kLargest = 1e9;

}  // namespace

std::vector<Scaling> parse_scalings(const std::vector<std::string>& texts) {
  if (texts.empty()) throw InputError("", "scaling", "", "need at least one");
  std::vector<Scaling> scalings;
  for (const std::string& text : texts) {
    const Scaling scaling = parse_scaling(text);
    if (scaling.parameter != 0 &&
        !(std::abs(scaling.parameter) >= kSmallest && std::abs(scaling.parameter) <= kLargest)) {
      throw InputError("", "scaling", text, "need 0 or a number from 1e-9 to 1e9");
    }
    if (std::find(scalings.begin(), scalings.end(), scaling) != scalings.end()) {
      throw InputError("", "scaling", text, "is there twice");
    }
    scalings.push_back(scaling);
  }
  return scalings;
}

std::vector<Scaling> factor_or_function(const std::vector<std::string>& texts) {
  std::vector<Scaling> scalings = parse_scalings(texts);
  for (const Scaling& scaling : scalings) {
    if (scaling.kind == ScalingKind::log_n_over_sqrt_d || scaling.kind == ScalingKind::critical ||
        scaling.kind == ScalingKind::scalable_softmax) {
      throw InputError("", "scaling", scaling_name(scaling),
                       "depends on the number of keys, which one score has none of");
    }
  }
  return scalings;
}

bool is_function(const Scaling& scaling) { return !has_normal_logits(scaling); }

bool is_cosine(const Scaling& scaling) {
  return scaling.kind == ScalingKind::qk_norm || scaling.kind == ScalingKind::cosine;
}

double scaled_score(const Scaling& scaling, double score, double d, double lengths) {
  if (scaling.kind == ScalingKind::softcap) {
    return scaling.parameter * std::tanh(score / std::sqrt(d) / scaling.parameter);
  }
  // A vector of length 0 has no direction.
  return lengths > 0 ? scaling.parameter * (score / lengths) : 0;
}

std::string scaling_phrase(const std::string& name) {
  if (name == "none") return "unscaled";
  if (name == "inv_sqrt_d") return "divided by sqrt(d_k)";
  return "under " + name;
}

void require_list(const std::vector<Index>& list, const char* field) {
  if (list.empty()) throw InputError("", field, "", "need at least one");
  std::set<Index> seen;
  for (const Index value : list) {
    if (!seen.insert(value).second) {
      throw InputError("", field, std::to_string(value), "is there twice");
    }
  }
}

}  // namespace attnlab
