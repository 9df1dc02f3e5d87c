#include "attnlab/experiments/state_values.h"

#include <cmath>

#include "attnlab/experiments/gradient_state.h"
#include "attnlab/experiments/row_metrics.h"
#include "attnlab/experiments/variance_state.h"
#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

const std::string kOther = "parts: hold a state of another command or version";

TEST_CASE("a state is written as numbers and read back in order") {
  StateWriter writer;
  writer.add(std::vector<double>{1, 2});
  writer.add_list({});
  writer.add_list(std::vector<double>{3, 4, 5});
  const std::vector<double> values = writer.take();
  CHECK(values == std::vector<double>{1, 2, 0, 3, 3, 4, 5});
  StateReader reader(values);
  const auto first = reader.take(2);
  CHECK(std::vector<double>(first.begin(), first.end()) == std::vector<double>{1, 2});
  CHECK(reader.take_list().empty());
  CHECK(reader.take_list(3) == std::vector<double>{3, 4, 5});
  CHECK(refusal([&] { reader.finish(); }) == "");
}

TEST_CASE("numbers that end too soon or too late are no state") {
  const std::vector<double> two = {1, 2};
  CHECK(refusal([&] { StateReader(two).take(3); }) == kOther);
  CHECK(refusal([&] { StateReader(two).finish(); }) == kOther);
  CHECK(refusal([&] { StateReader({}).take_list(); }) == kOther);
  CHECK(refusal([&] { StateReader(two).take_list(2); }) == kOther);
  for (const double length : {2.0, -1.0, std::nan(""), 1e300, HUGE_VAL}) {
    const std::vector<double> list = {length, 5};
    INFO(length);
    CHECK(refusal([&] { StateReader(list).take_list(); }) == kOther);
  }
}

// Every state refuses its own numbers once one is missing, one is too many, or the first count is
// negative or no whole number.
template <class State>
void check_refusals(const State& empty, const State& filled) {
  const std::vector<double> values = filled.values();
  const auto refused = [&](const std::vector<double>& changed) {
    State state = empty;
    return refusal([&] { state.set_values(changed); });
  };
  CHECK(refused(values) == "");
  State again = empty;
  again.set_values(values);
  CHECK(again.values() == values);
  std::vector<double> changed = values;
  changed.pop_back();
  CHECK(refused(changed) != "");
  changed = values;
  changed.push_back(0);
  CHECK(refused(changed) == kOther);
  CHECK(refused({}) == kOther);
  for (const double count : {-1.0, 1.5, std::nan("")}) {
    changed = values;
    changed[0] = count;
    CHECK(refused(changed) != "");
  }
}

TEST_CASE("the states of the experiments refuse numbers that are not theirs") {
  VarianceState variance, with_components;
  variance.samples.resize(2);
  with_components.samples.resize(1);
  with_components.components.emplace(2);
  with_components.covariance.emplace(2);
  VarianceState filled = variance, filled_components = with_components;
  for (const double score : {1.0, 2.0, 4.0}) {
    filled.samples[0].moments.add(score);
    filled.samples[0].block_mean_squares.push_back(score);
    filled.samples[1].scores.push_back(score);
    filled_components.samples[0].moments.add(score);
    filled_components.components->add(std::vector<double>{score, 1});
    filled_components.covariance->add(std::vector<double>{score, 1});
  }
  check_refusals(variance, filled);
  check_refusals(with_components, filled_components);
  // Components of another d_k.
  VarianceState three = with_components;
  three.components.emplace(3);
  three.covariance.emplace(3);
  CHECK(refusal([&] { three.set_values(filled_components.values()); }) == kOther);

  SaturationState saturation{std::vector<RowSample>(1)}, rows = saturation;
  RowMeter meter(1e-3);
  meter.measure(std::vector<double>{1, 2, 3});
  rows.samples[0].add(meter, true);
  check_refusals(saturation, rows);

  GradientState gradients{std::vector<GradientSample>(1)}, squares = gradients;
  squares.samples[0].mean_squares = {{{1, 2}, {3, 4}, {5, 6}}};
  check_refusals(gradients, squares);
}

}  // namespace
}  // namespace attnlab
