#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/candidate.h"
#include "attnlab/experiments/mistakes.h"

namespace attnlab {

// Root mean squares of errors against one attention: that of a candidate, and that of the same
// attention with 16-bit sums.
struct RoundingSize {
  double candidate = 0, model = 0;
};

// A candidate held against attention with some mistakes, or none: what was asked for.
struct Finding {
  std::vector<const Mistake*> mistakes;
  Difference difference;
  bool explains = false;
  bool as_asked = false;                 // these inputs cannot tell it from what was asked for
  std::optional<RoundingSize> rounding;  // where the size of the error is what explains

  // "correct", "unscaled", "unscaled + bottom_right"
  std::string name() const;
  // The mistakes in words, joined by "and", and what was asked for in their place.
  std::string found(const AttentionVariant& asked) const;
  std::string asked(const AttentionVariant& asked) const;
  // The last of them, and those before it.
  std::string last_found(const AttentionVariant& asked) const;
  std::string found_before(const AttentionVariant& asked) const;
};

// Whether the candidate is nearer to a than to b: those that explain it first, then by the root
// mean square of the error. Last are what cannot be told from what was asked for, and 16-bit sums,
// which are not near by being a little off.
bool nearer(const Finding& a, const Finding& b);

// What was asked for first, then every mistake that applies, in the order of the table, then, where
// none of these explains the candidate, what does in pairs. `exact` is the output asked for. Sums
// in 16 bits are looked at in a sample of the rows where these are many. The result does not depend
// on `threads`. What was left out is said in `notes`.
std::vector<Finding> find_mistakes(const AttentionVariant& asked, const Candidate& candidate,
                                   const Tensor<double>& exact, Index threads,
                                   std::vector<std::string>& notes);

}  // namespace attnlab
