#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "attnlab/core/tensor.h"

namespace attnlab {

using Json = nlohmann::ordered_json;

// Strict JSON (RFC 8259): a duplicate key, nesting deeper than 32, a number outside float64, bytes
// that are not UTF-8, and anything after the value are errors, told with line and column (numbers
// and keys with their path, as in "q[0][1]"). A UTF-8 byte-order mark is skipped. Integers that fit
// 64 bits stay exact; "-0" is the float64. Throws InputError naming `source`.
Json parse_json(std::string_view text, std::string_view source);

// Nested arrays of numbers, or one number, as float64; nested arrays of true and false, as bool.
// "NaN", "Infinity" and "-Infinity" are the only strings allowed. Ragged, empty ([]) and deeper
// than rank 4 are errors; each names `field` followed by the index.
AnyTensor tensor_from_json(const Json& value, std::string_view source, std::string_view field);

// A number, or one of the three strings.
Json number_to_json(double value);
// Nested arrays; every value exactly (integers as such, booleans as true and false).
Json tensor_to_json(const AnyTensor& tensor);

// One line for arrays of numbers, one line a row for matrices, indented objects; ends without a
// newline. Numbers are the shortest text that reads back as the same float64.
std::string dump_json(const Json& value);

// Appends what dump_json(tensor_to_json(tensor)) gives, without a Json in between. `row_done` is
// called between rows and may empty the text.
void append_tensor_json(std::string& out, const AnyTensor& tensor,
                        const std::function<void(std::string&)>& row_done);

}  // namespace attnlab
