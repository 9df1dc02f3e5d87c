#pragma once

#include <string>
#include <vector>

#include "attnlab/core/describe.h"
#include "render/style.h"

namespace attnlab {

// "[2, 5, 5] float32"; "float32" for one number.
std::string shape_text(const AnyTensor& matrix);

// What is told in one line, as "entropy  0.8324 nats": every value but matrices and rows, and a
// matrix that is one number (rank 0) or was not computed.
bool is_scalar(const ResultRef& result);

// One line each: name, value, unit; the values stand under each other.
std::string scalar_block(const std::vector<ResultRef>& scalars, const Style& style);

// Rows as a table under the name of the result, unless that is "rows"; of many the first and last.
std::string rows_block(const ResultRef& result, const RowsRef& rows, const Style& style);

}  // namespace attnlab
