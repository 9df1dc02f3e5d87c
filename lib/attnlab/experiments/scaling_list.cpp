#include "attnlab/experiments/scaling_list.h"

#include <algorithm>
#include <cmath>

#include "attnlab/core/dot.h"
#include "attnlab/core/error.h"

namespace attnlab {

std::vector<Scaling> parse_scalings(const std::vector<std::string>& texts) {
  require_list(texts.size(), "scaling");
  std::vector<Scaling> scalings;
  for (const std::string& text : texts) {
    const Scaling scaling = parse_scaling(text);
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

double scaled_score(const Scaling& scaling, double score, std::span<const float> q,
                    std::span<const float> k) {
  if (scaling.kind == ScalingKind::softcap) {
    const double scaled = score / std::sqrt(static_cast<double>(q.size()));
    return scaling.parameter * std::tanh(scaled / scaling.parameter);
  }
  const double lengths = std::sqrt(dot(q, q) * dot(k, k));
  return lengths > 0 ? scaling.parameter * (score / lengths) : 0;
}

void require_list(std::size_t size, const char* field) {
  if (size == 0) throw InputError("", field, "", "need at least one");
}

}  // namespace attnlab
