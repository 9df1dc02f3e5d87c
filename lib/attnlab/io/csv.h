#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "attnlab/core/tensor.h"

namespace attnlab {

// A matrix [rows, columns] of float64 out of lines of numbers, separated by ',' (.csv) or '\t'
// (.tsv). Blanks around a number, a leading '+', a UTF-8 byte-order mark, CRLF and newlines at the
// end of the file are accepted; NaN, Infinity and -Infinity stand for themselves. Everything else
// is an InputError naming `source`, line and column: rows of unequal length, empty cells (a comma
// at the end of a line leaves one), blank lines between rows, names, quotes, decimal commas,
// numbers outside float64, an empty file, text that is not UTF-8.
Tensor<double> parse_csv(std::string_view text, char separator, std::string_view source);

// Throws InputError naming `field` and `path` when `shape` has no place in a table: more than two
// axes, or no elements.
void check_csv_shape(const Shape& shape, std::string_view path, std::string_view field);

// Appends the tensor, one line a row (a vector or a number is one line), so that every value reads
// back exactly as a float64; booleans as 1 and 0. `row_done` is called after each row and may
// empty the text.
void append_csv(std::string& out, const AnyTensor& tensor, char separator,
                const std::function<void(std::string&)>& row_done);

}  // namespace attnlab
