#pragma once

#include <functional>
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

// What a file of rows or scalars holds of a result: its rows, the first when there are more; where
// it has none, one row of its scalars, the shown matrices that are one number among them.
struct FlatRows {
  std::vector<ResultRef> columns;
  std::size_t count = 0;
  std::function<std::vector<ResultRef>(std::size_t)> row;
};
FlatRows flat_rows(const std::vector<ResultRef>& results, const std::vector<std::string>& shown);

}  // namespace attnlab
