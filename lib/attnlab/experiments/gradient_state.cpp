#include "attnlab/experiments/gradient_state.h"

#include <algorithm>

#include "attnlab/attention/softmax_jacobian.h"
#include "attnlab/core/dot.h"
#include "attnlab/experiments/state_values.h"

namespace attnlab {

void GradientState::merge(const GradientState& other) {
  for (std::size_t s = 0; s < samples.size(); ++s) {
    for (std::size_t i = 0; i < kGradients; ++i) {
      std::vector<double>& to = samples[s].mean_squares[i];
      const std::vector<double>& from = other.samples[s].mean_squares[i];
      to.insert(to.end(), from.begin(), from.end());
    }
  }
}

std::vector<double> GradientState::values() const {
  StateWriter writer;
  for (const GradientSample& sample : samples) {
    for (const std::vector<double>& list : sample.mean_squares) writer.add_list(list);
  }
  return writer.take();
}

void GradientState::set_values(std::span<const double> values) {
  StateReader reader(values);
  for (GradientSample& sample : samples) {
    for (std::vector<double>& list : sample.mean_squares) list = reader.take_list();
  }
  reader.finish();
}

std::array<double, kGradients> RowGradients::mean_squares(double scale, std::span<const float> q,
                                                          std::span<const float> keys,
                                                          std::span<const double> scores,
                                                          std::span<const double> grad_weights,
                                                          double grad_output_square) {
  const std::size_t n = scores.size(), d = q.size();
  logits_.resize(n);
  grad_scores_.resize(n);
  for (std::size_t j = 0; j < n; ++j) logits_[j] = scale * scores[j];
  SoftmaxRow<double> row;
  row.set_logits(logits_);
  softmax_jacobian_product<double>(row, grad_weights, grad_scores_);

  grad_q_.assign(d, 0);
  double score_square = 0, weight_square = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const double grad = scale * grad_scores_[j];
    score_square += grad * grad;
    weight_square += row.weights()[j] * row.weights()[j];
    const auto k = keys.subspan(j * d, d);
    for (std::size_t c = 0; c < d; ++c) grad_q_[c] += grad * static_cast<double>(k[c]);
  }
  double q_square = 0;
  for (const double g : grad_q_) q_square += g * g;
  const auto elements = static_cast<double>(d), all = static_cast<double>(n * d);
  // dK and dV are outer products.
  return {q_square / elements, score_square * dot(q, q) / all,
          weight_square * grad_output_square / all};
}

}  // namespace attnlab
