#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attnlab/experiments/attention_variant.h"
#include "attnlab/experiments/departure.h"

namespace attnlab {

// How far a candidate is from a variant. What is not finite on one side alone, or of another sign,
// is infinitely far.
struct Difference {
  double max_abs_error = 0;
  Index worst_row = 0;  // over [batch, heads, n]
  double squares = 0;   // of the errors
  Index elements = 0;
  std::optional<double> relative_norm;  // ||candidate - variant|| / ||variant||
  std::optional<Departure> departure;   // without one they are equal within the tolerance
  double from_asked = 0;                // max |variant - what was asked for|

  double rms() const;
};

// The output that is looked at.
class Candidate {
 public:
  // output [batch, heads, n, d_v]
  Candidate(Tensor<double> output, double tolerance);

  const Shape& shape() const { return output_.shape(); }
  double tolerance() const { return tolerance_; }
  std::span<const double> row(Index row) const;
  // |a - b| with the rule for what is not finite.
  static double distance(double a, double b);

  // `asked` is the output that was asked for.
  Difference difference(const AttentionVariant& variant, std::span<const QueryBlock> blocks,
                        const Tensor<double>& asked) const;
  // Whether they are equal within the tolerance; stops at the first row that is not, `first` being
  // looked at before the others.
  bool equals(const AttentionVariant& variant, const QueryBlock& first) const;

 private:
  Tensor<double> output_;
  double tolerance_;
};

}  // namespace attnlab
