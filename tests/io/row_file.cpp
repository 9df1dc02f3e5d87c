#include "attnlab/io/row_file.h"

#include <cmath>

#include "attnlab/core/error.h"
#include "catch.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

std::vector<RowLine> rows_of(const std::string& text) {
  const TemporaryFolder folder;
  return read_row_file(folder.write("rows.jsonl", text), "resume");
}

// What is said of a file of that text, without its path.
std::string refused(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder.write("rows.jsonl", text);
  try {
    read_row_file(path, "resume");
  } catch (const InputError& error) {
    const std::string said = error.what();
    REQUIRE(said.find(path) == 0);
    return said.substr(path.size());
  }
  return "";
}

TEST_CASE("a row has a cell of each kind") {
  const auto rows =
      rows_of(R"({"a": null, "b": true, "c": -1.5, "d": "text", "e": [1, 2.5], "f": []})"
              "\n");
  REQUIRE(rows.size() == 1);
  const auto& cells = rows[0].cells;
  CHECK(cells.size() == 6);
  CHECK(cells.at("a") == RowCell(std::monostate{}));
  CHECK(cells.at("b") == RowCell(true));
  CHECK(cells.at("c") == RowCell(-1.5));
  CHECK(cells.at("d") == RowCell("text"));
  CHECK(cells.at("e") == RowCell(std::vector<double>{1, 2.5}));
  CHECK(cells.at("f") == RowCell(std::vector<double>{}));
}

TEST_CASE("rows keep their order and know their line") {
  const auto rows = rows_of("{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}\n");
  REQUIRE(rows.size() == 3);
  CHECK(rows[2].cells.at("n") == RowCell(3.0));
  CHECK(rows[2].source.ends_with("rows.jsonl: line 3"));
}

TEST_CASE("the texts NaN and Infinity are numbers, alone and in lists") {
  const auto rows =
      rows_of(R"({"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": ["NaN", 1, "-Infinity"]})"
              "\n");
  const auto& cells = rows.at(0).cells;
  CHECK(std::isnan(std::get<double>(cells.at("a"))));
  CHECK(cells.at("b") == RowCell(HUGE_VAL));
  CHECK(cells.at("c") == RowCell(-HUGE_VAL));
  const auto& list = std::get<std::vector<double>>(cells.at("d"));
  REQUIRE(list.size() == 3);
  CHECK(std::isnan(list[0]));
  CHECK(list[1] == 1);
  CHECK(list[2] == -HUGE_VAL);
}

TEST_CASE("numbers come back with all their bits") {
  const auto rows =
      rows_of("{\"a\": 0.1, \"b\": 4.9406564584124654e-324, \"c\": 9007199254740993}\n");
  CHECK(rows.at(0).cells.at("a") == RowCell(0.1));
  CHECK(rows.at(0).cells.at("b") == RowCell(4.9406564584124654e-324));
  CHECK(std::get<double>(rows.at(0).cells.at("c")) == 9007199254740992.0);
}

TEST_CASE("a last line that was being written is left out") {
  CHECK(rows_of("{\"n\": 1}\n{\"n\": 2").size() == 1);
  // Whole, but without its newline there is no telling.
  CHECK(rows_of("{\"n\": 1}\n{\"n\": 2}").size() == 1);
  CHECK(rows_of("{\"n\":").empty());
  CHECK(rows_of("").empty());
}

TEST_CASE("a line that marks an interruption is no row") {
  const auto rows =
      rows_of("{\"n\": 1}\n{\"interrupted\": true, \"rows\": 1, \"run\": \"x\"}\n{\"n\": 2}\n");
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].cells.at("n") == RowCell(2.0));
  CHECK(rows[1].source.ends_with("line 3"));
}

TEST_CASE("what is no row is refused with its line") {
  const std::string good = "{\"n\": 1}\n";
  CHECK(refused(good + "[1]\n") == ": line 2: need one object, a row of a result");
  CHECK(refused("5\n") == ": line 1: need one object, a row of a result");
  CHECK(refused(good + "\n" + good).find(": line 2: ") == 0);
  CHECK(refused(good + "{\"n\": }\n").find(": line 2: ") == 0);
  CHECK(refused("{\"n\": 1, \"n\": 2}\n").find(": line 1: ") == 0);
  CHECK(refused("{\"a\": {\"b\": 1}}\n") ==
        ": line 1: a: got {\"b\":1}, need a number, a text, null or a list of numbers");
  const std::string list = ": line 1: a: need a list of numbers";
  CHECK(refused("{\"a\": [1, \"one\"]}\n") == list);
  CHECK(refused("{\"a\": [[1]]}\n") == list);
  CHECK(refused("{\"a\": [null]}\n") == list);
  CHECK(refused("{\"a\": [true]}\n") == list);
}

TEST_CASE("a file of rows that is not there is refused with its option") {
  std::string said;
  try {
    read_row_file("/nowhere/rows.jsonl", "resume");
  } catch (const InputError& error) {
    said = error.what();
  }
  CHECK(said.find("resume: got /nowhere/rows.jsonl") == 0);
}

}  // namespace
}  // namespace attnlab
