#include <cmath>

#include "app/described.h"
#include "attnlab/io/row_file.h"
#include "catch.h"
#include "progress.h"
#include "render/report.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

struct LineRow {
  Index d_k = 4;
  std::string scaling = "a \"b\"\n";
  double variance = 0.1;
  std::optional<double> theory;
  double nothing = std::nan("");
  std::vector<double> quantiles = {1, HUGE_VAL};

  static constexpr auto fields() {
    using R = LineRow;
    return std::tuple(field("d_k", &R::d_k, ""), field("scaling", &R::scaling, ""),
                      field("variance", &R::variance, ""), field("theory", &R::theory, ""),
                      field("nothing", &R::nothing, ""), field("quantiles", &R::quantiles, ""));
  }
};

TEST_CASE("a row is one line of JSON, with what identifies its run at its end") {
  const LineRow row;
  CHECK(jsonl_line(result_of(row)) ==
        R"({"d_k": 4, "scaling": "a \"b\"\n", "variance": 0.1, "theory": null, )"
        R"("nothing": "NaN", "quantiles": [1, "Infinity"]})"
        "\n");
  const std::string line = jsonl_line(result_of(row), "0123");
  CHECK(line.ends_with(R"("quantiles": [1, "Infinity"], "run": "0123"})"
                       "\n"));
  CHECK(std::count(line.begin(), line.end(), '\n') == 1);
}

TEST_CASE("the mark of an interruption counts the rows before it") {
  CHECK(interrupted_line(12, "0123") ==
        "{\"interrupted\": true, \"rows\": 12, \"run\": \"0123\"}\n");
}

TEST_CASE("lines that were written are read back as they were") {
  const TemporaryFolder folder;
  const LineRow row;
  const std::string path =
      folder.write("rows.jsonl", jsonl_line(result_of(row), "0123") + interrupted_line(1, "0123"));
  const std::vector<RowLine> rows = read_row_file(path, "resume");
  REQUIRE(rows.size() == 1);
  const auto& cells = rows[0].cells;
  CHECK(cells.at("d_k") == RowCell(4.0));
  CHECK(cells.at("scaling") == RowCell(row.scaling));
  CHECK(cells.at("variance") == RowCell(0.1));
  CHECK(cells.at("theory") == RowCell(std::monostate{}));
  CHECK(std::isnan(std::get<double>(cells.at("nothing"))));
  CHECK(cells.at("quantiles") == RowCell(row.quantiles));
  CHECK(cells.at("run") == RowCell("0123"));
}

TEST_CASE("durations are told roughly, in the unit that suits them") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(12.4) == "12 s");
  CHECK(duration_text(99) == "99 s");
  CHECK(duration_text(120) == "2 min");
  CHECK(duration_text(99 * 60) == "99 min");
  CHECK(duration_text(7200) == "2 h");
  CHECK(duration_text(360000) == "100 h");
  // What rounds to the next unit's first value says so in its own.
  CHECK(duration_text(99.6) == "100 s");
}

}  // namespace
}  // namespace attnlab
