#pragma once

#include <string>
#include <string_view>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Pieces of JSON written straight into a text: a matrix of many millions of elements passes through
// no tree of values.

// "text", escaped; malformed UTF-8 is replaced.
std::string json_string(std::string_view text);

// A JSON number, or "NaN", "Infinity", "-Infinity" in quotes.
void append_json_number(std::string& out, double value);

// JSON with its lines after the first `indent` columns further in. JSON strings have no line
// breaks, so that every one is between values.
void append_indented(std::string& out, std::string_view json, std::size_t indent);

// Nested arrays, one line a row, exact; continued lines are indented by `indent`.
void append_json_tensor(std::string& out, const AnyTensor& tensor, std::size_t indent);

// The same on one line.
std::string json_line(const AnyTensor& tensor);

}  // namespace attnlab
