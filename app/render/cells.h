#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

// One value of a result as text. Rows and matrices are values too, though tables and CSV have no
// room for them and take their shape or their JSON.

// For people: rounded to `digits` significant digits, undefined a dash.
std::string table_cell(const ResultValue& value, int digits);

// A JSON value, exact: undefined is null, non-finite numbers are strings.
std::string json_cell(const ResultValue& value);

// One cell of a CSV file (RFC 4180), exact: undefined is empty, lists are JSON.
std::string csv_cell(const ResultValue& value);

// {"name": value, ...} on one line.
std::string json_object(const std::vector<ResultRef>& values);

// How a column of such values stands in a table: numbers at their decimal point; what is counted
// or named (d_k, scaling) tells rows apart, what is measured does not.
bool is_numeric(const ResultValue& value);
bool is_measured(const ResultValue& value);

// The rows among the values of a result, the first when there are more, else null.
const RowsRef* rows_of(const std::vector<ResultRef>& results);

// The values that are neither matrices nor rows.
std::vector<ResultRef> scalars_of(const std::vector<ResultRef>& results);

}  // namespace attnlab
