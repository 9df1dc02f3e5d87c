#include "attnlab/experiments/score_options.h"

#include <cmath>

namespace attnlab {

AttentionSettings attention_settings(const ScoreOptions& options, const RunOptions& run,
                                     Index d_k) {
  AttentionSettings settings;
  if (options.scale.is_number()) {
    settings.scale = options.scale.number;
  } else if (options.scale.word == "auto") {
    settings.scale = 1 / std::sqrt(static_cast<double>(d_k));
  }
  settings.softcap = options.softcap;
  settings.dropout = options.dropout;
  settings.kernel = options.kernel;
  settings.seed = run.seed;
  settings.threads = run.threads;
  return settings;
}

}  // namespace attnlab
