#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/core/describe.h"
#include "attnlab/experiments/run_options.h"

namespace attnlab {

template <>
inline constexpr std::array<std::string_view, 3> kChoiceNames<Kernel> = {"auto", "tiled", "full"};

inline constexpr std::array<std::string_view, 2> kScaleWords = {"auto", "none"};

// How scores become weights.
struct ScoreOptions {
  WordOrNumber scale = "auto";
  std::optional<double> softcap;
  double dropout = 0;
  Kernel kernel = Kernel::automatic;

  static constexpr auto fields() {
    using O = ScoreOptions;
    return std::tuple(
        field("scale", &O::scale, "the factor on q.k; auto is 1/sqrt(d_k), none is 1",
              {.unit = "NUMBER", .words = kScaleWords}),
        field("softcap", &O::softcap, "C in C tanh(scores / C), taken before the mask",
              {.unit = "C", .range = above(0.0)}),
        field("dropout", &O::dropout, "share of the weights dropped, drawn from the seed",
              {.unit = "P", .range = {.low = 0.0, .high = 1.0, .high_open = true}}),
        field("kernel", &O::kernel,
              "tiled is fast and keeps no matrix of scores, full follows the formula step by step; "
              "auto "
              "is tiled"));
  }
};

// What scaled_dot_product takes for queries of width d_k.
AttentionSettings attention_settings(const ScoreOptions& options, const RunOptions& run, Index d_k);

}  // namespace attnlab
