#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "render/trace.h"

namespace attnlab {

// What positions do to queries, keys and scores, worked out for traces. Nothing where the numbers
// written out do not give the element of the matrix.

// Where query i stands among the keys, as the options have it; nothing where each batch entry has
// a place of its own.
std::optional<Index> query_position(const Trace& trace, Index i);

// The first element of row `row` of `name`, the matrix `source` rotated, at `position`.
std::vector<Equation> rotation(const Trace& trace, std::string_view name, std::string_view source,
                               Index row, Index position);

// masked_scores[query, key] as the score `before` of that name with its linear bias, in the first
// head.
std::vector<Equation> linear_bias(const Trace& trace, std::string_view before, Index query,
                                  Index key);

}  // namespace attnlab
