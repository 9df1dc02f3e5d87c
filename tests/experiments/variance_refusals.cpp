#include "attnlab/experiments/variance.h"

#include <atomic>

#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

std::string refused(const VarianceOptions& options) {
  return refusal([&] { variance(options, {}); });
}

template <class Change>
std::string refused_with(const Change& change) {
  VarianceOptions options;
  options.d_k = {4};
  options.sweep.samples = 100;
  change(options);
  return refused(options);
}

TEST_CASE("empty lists and scalings that one score cannot have are refused") {
  using O = VarianceOptions;
  CHECK(refused_with([](O& o) { o.d_k = {}; }) == "d_k: need at least one");
  CHECK(refused_with([](O& o) { o.scaling = {}; }) == "scaling: need at least one");
  CHECK(refused_with([](O& o) {
          o.scaling = {"none", "inv_d", "none"};
        }) == "scaling: got none, is there twice");
  for (const char* name : {"log_n_over_sqrt_d", "critical", "scalable_softmax:0.43"}) {
    CHECK(refused_with([&](O& o) { o.scaling = {name}; }) ==
          "scaling: got " + std::string(name) +
              ", depends on the number of keys, which one score has none of");
  }
  CHECK(refused_with([](O& o) { o.scaling = {"inv_sqrt"}; }).find("scaling: got inv_sqrt") == 0);
}

TEST_CASE("options of a projection need one") {
  using O = VarianceOptions;
  const std::string rule = ": is of scores behind a projection: give --projection too";
  CHECK(refused_with([](O& o) { o.projection.layer_norm = true; }) == "layer_norm" + rule);
  CHECK(refused_with([](O& o) { o.projection.d_model = 8; }) == "d_model" + rule);
  CHECK(refused_with([](O& o) { o.projection.positions = Positions::different; }) ==
        "positions" + rule);
}

TEST_CASE("what q and k have in common is not of tokens") {
  using O = VarianceOptions;
  using Change = void (*)(O&);
  const std::pair<const char*, Change> changes[] = {
      {"mean_q", [](O& o) { o.dependence.mean_q = 1; }},
      {"mean_k", [](O& o) { o.dependence.mean_k = 1; }},
      {"rho_q", [](O& o) { o.dependence.rho_q = 0.5; }},
      {"rho_k", [](O& o) { o.dependence.rho_k = 0.5; }},
      {"rho_qk", [](O& o) { o.dependence.rho_qk = 0.5; }}};
  for (const auto& [name, change] : changes) {
    CHECK(refused_with([&, change = change](O& o) {
            o.projection.projection = Projection::free;
            change(o);
          }) == std::string(name) +
                    ": is of q and k themselves; behind a projection they come from tokens");
  }
}

TEST_CASE("a layer norm needs two entries") {
  using O = VarianceOptions;
  const auto with_size = [](Index size, bool layer_norm) {
    return refused_with([&](O& o) {
      o.projection = {Projection::free, Positions::same, layer_norm, size};
    });
  };
  CHECK(with_size(1, true) == "d_model: need at least 2 entries for a layer norm");
  CHECK(with_size(2, true) == "");
  CHECK(with_size(1, false) == "");
}

TEST_CASE("pairs are of independent queries and keys of mean 0") {
  using O = VarianceOptions;
  using Change = void (*)(O&);
  const std::pair<const char*, Change> changes[] = {
      {"projection", [](O& o) { o.projection.projection = Projection::free; }},
      {"mean_q", [](O& o) { o.dependence.mean_q = 1; }},
      {"mean_k", [](O& o) { o.dependence.mean_k = 1; }},
      {"rho_qk", [](O& o) { o.dependence.rho_qk = 0.5; }},
      {"components", [](O& o) { o.components = true; }}};
  for (const auto& [name, change] : changes) {
    CHECK(refused_with([&, change = change](O& o) {
            o.sampling = Sampling::pairs;
            change(o);
          }).find(std::string(name) + ": cannot go with sampling pairs") == 0);
  }
  CHECK(refused_with([](O& o) {
          o.sampling = Sampling::pairs;
          o.sweep.samples = 63;
        }) == "samples: got 63, need at least 64, one pair a block, with sampling pairs");
  CHECK(refused_with([](O& o) {
          o.sampling = Sampling::pairs;
          o.sweep.samples = 64;
          o.dependence.rho_q = 0.5;
          o.dependence.rho_k = 0.5;
        }) == "");
}

TEST_CASE("nu and correlations out of range are refused by name") {
  using O = VarianceOptions;
  CHECK(refused_with([](O& o) { o.entries.nu = 5; }).find("nu: got 5") == 0);
  CHECK(refused_with([](O& o) { o.entries = {Distribution::student_t, 0.5, 1}; }).find("nu") == 0);
  CHECK(refused_with([](O& o) { o.entries.sigma = -1; }).find("sigma") == 0);
  // Below -1/(d_k - 1) no four entries can be correlated alike.
  CHECK(refused_with([](O& o) { o.dependence.rho_q = -0.34; }).find("rho_q: ") == 0);
  CHECK(refused_with([](O& o) { o.dependence.rho_k = -0.34; }).find("rho_k: ") == 0);
  CHECK(refused_with([](O& o) { o.dependence.rho_q = -1.0 / 3; }) == "");
  CHECK(refused_with([](O& o) { o.dependence.rho_qk = 1.5; }).find("rho_qk: ") == 0);
}

TEST_CASE("robust figures of more scores than fit in memory are refused before computing") {
  // Nothing is computed where it is not refused.
  const std::atomic<bool> cancel{true};
  Watch watch;
  watch.cancel = &cancel;
  VarianceOptions options;
  options.entries = {Distribution::student_t, 3.0, 1};
  options.sweep.samples = Index{1} << 50;
  CHECK(refusal([&] { variance(options, watch); }).find("the scores kept for robust figures") !=
        std::string::npos);
  // Bounded scores need none.
  options.scaling = {"qk_norm:1"};
  CHECK(refusal([&] { variance(options, watch); }) == "");
}

}  // namespace
}  // namespace attnlab
