#include "attnlab/experiments/variance_state.h"

#include "attnlab/experiments/state_values.h"

namespace attnlab {
namespace {

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void ScoreSample::merge(const ScoreSample& other) {
  moments.merge(other.moments);
  append(block_mean_squares, other.block_mean_squares);
  append(scores, other.scores);
}

void VarianceState::merge(const VarianceState& other) {
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].merge(other.samples[i]);
  if (components) components->merge(*other.components);
  if (covariance) covariance->merge(*other.covariance);
}

std::uint64_t VarianceState::trials() const {
  const ScoreSample& sample = samples[0];
  return sample.block_mean_squares.empty() ? sample.moments.count
                                           : sample.block_mean_squares.size();
}

std::vector<double> VarianceState::values() const {
  StateWriter writer;
  for (const ScoreSample& sample : samples) {
    writer.add(sample.moments.values());
    writer.add_list(sample.block_mean_squares);
    writer.add_list(sample.scores);
  }
  if (components) writer.add_list(components->values());
  if (covariance) writer.add_list(covariance->values());
  return writer.take();
}

void VarianceState::set_values(std::span<const double> values) {
  StateReader reader(values);
  for (ScoreSample& sample : samples) {
    sample.moments = Moments::from_values(reader.take(Moments::kValues));
    sample.block_mean_squares = reader.take_list();
    sample.scores = reader.take_list();
  }
  // Of as many components as those it is to be merged with.
  if (components) {
    const std::size_t count = components->values().size();
    components = ComponentMoments::from_values(reader.take_list(count));
  }
  if (covariance) {
    const std::size_t count = covariance->values().size();
    covariance = Covariance::from_values(reader.take_list(count));
  }
  reader.finish();
}

}  // namespace attnlab
