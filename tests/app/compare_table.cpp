#include "render/compare_table.h"

#include "catch.h"

namespace attnlab {
namespace {

CompareRow row_of(const std::string& name, Index exact, std::vector<Index> decades,
                  std::vector<Index> in_decade) {
  CompareRow row;
  row.name = name;
  row.shape = "[9]";
  row.equal = true;
  row.exact = exact;
  row.decades = std::move(decades);
  row.in_decade = std::move(in_decade);
  return row;
}

std::string table_of(const CompareResult& result, int width = 80) {
  Style style;
  style.width = width;
  return compare_table({}, result, {}, style).value();
}

// What stands from the line that begins with `start` to the next empty one.
std::string block_of(const std::string& text, const std::string& start) {
  const std::size_t at = text.find("\n" + start);
  REQUIRE(at != std::string::npos);
  return text.substr(at + 1, text.find("\n\n", at) - at);
}

TEST_CASE("the errors of one tensor are drawn as bars, no count without one") {
  CompareResult result;
  result.rows = {row_of("tensor", 1, {-8, -7, -6}, {400, 0, 100})};
  CHECK(block_of(table_of(result), "|a - b|") ==
        "|a - b|  elements\n"
        "0               1  #\n"
        "1e-08         400  ########################################\n"
        "1e-07           0\n"
        "1e-06         100  ##########\n");
}

TEST_CASE("those of several stand side by side, what has none left out") {
  CompareResult result;
  result.rows = {row_of("scores", 4, {-12, -11}, {2, 3}), row_of("empty_rows", 1, {}, {}),
                 row_of("output", 0, {-3}, {9})};
  CHECK(block_of(table_of(result), "|a - b|") ==
        "|a - b|  0  below  1e-09  1e-08  1e-07  1e-06  1e-05  1e-04  1e-03\n"
        "scores   4      5      0      0      0      0      0      0      0\n"
        "output   0      0      0      0      0      0      0      0      9\n");
}

TEST_CASE("errors far below the largest are one count, and where there are none no block stands") {
  CompareResult result;
  result.rows = {row_of("tensor", 0, {}, {})};
  CHECK(table_of(result).find("|a - b|") == std::string::npos);
  std::vector<Index> decades, counts;
  for (Index decade = -15; decade <= 0; ++decade) {
    decades.push_back(decade);
    counts.push_back(1);
  }
  result.rows = {row_of("tensor", 0, decades, counts)};
  const std::string text = block_of(table_of(result), "|a - b|");
  CHECK(text.find("below           4  #") != std::string::npos);
  CHECK(text.find("1e-12") == std::string::npos);
  CHECK(text.find("1e-11           1  #") != std::string::npos);
  CHECK(text.find("1e+00           1  #") != std::string::npos);
}

TEST_CASE("a case shows what its kernel is measured by, and the verdict") {
  CompareResult result;
  result.rows = {row_of("output", 9, {}, {})};
  CHECK(table_of(result).find("dtype_a") != std::string::npos);
  CHECK(table_of(result).find("plain_error") == std::string::npos);
  result.rows[0].plain_error = .5;
  result.verdict = "output agrees with the float64 reference.";
  const std::string text = table_of(result);
  CHECK(text.find("dtype_a") == std::string::npos);
  CHECK(text.find("plain_error") != std::string::npos);
  CHECK(text.find("\noutput agrees with the float64 reference.\n\nequal  true\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace attnlab
