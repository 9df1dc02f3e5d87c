#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attnlab/experiments/attention_variant.h"

namespace attnlab {

// What a mistake changes. Two of the same aspect exclude each other.
enum class Aspect {
  scale,
  softcap,
  rotation,
  linear_bias,
  diagonal,
  causal,
  window_left,
  window_right,
  lengths,
  mask_file,
  seen,
  hidden,
  empty_rows,
  axis,
  heads,
  layout,
  operands,
  past,
  dropout,
  accumulator
};

// One way to get attention wrong.
struct Mistake {
  std::string_view name;
  Aspect aspect;
  // "attention with ..." of who made it, and "you asked for ...", with {scale}, {default_scale},
  // {diagonal}, {left}, {right}, {softcap} and {theta} for those of the call.
  std::string_view found;
  std::string_view asked;
  // Whether the call has what it is about.
  bool (*applies)(const AttentionVariant&);
  void (*make)(AttentionVariant&);
};

// All that are known, the likely ones first.
std::span<const Mistake> all_mistakes();

// A sentence part of a mistake with the numbers of the call put in.
std::string mistake_text(std::string_view text, const AttentionVariant& asked);

}  // namespace attnlab
