#include <algorithm>

#include <bit>
#include <cmath>
#include <cstdlib>

#include "app/render_sample.h"
#include "attnlab/core/error.h"
#include "attnlab/io/json.h"
#include "catch.h"

namespace attnlab {
namespace {

const std::vector<std::string> kAll = {"weights", "output", "absent"};

TEST_CASE("a table shows the chosen matrices and all scalars in the order of the result") {
  const test::SampleResult result = test::sample_result();
  const Report report{"attend", {}, result_of(result), {}};
  CHECK(render_table(report, kAll, {}) ==
        "weights = softmax(scores)   [2, 3] float64\n"
        "  0.2500  0.7500  0\n"
        "  0.3333  0.3333  0.3333\n"
        "\n"
        "output = weights v   [2, 2] float32\n"
        "    0.1   -2.5\n"
        "    0    100.1\n"
        "\n"
        "absent      -\n"
        "empty_rows  1\n"
        "entropy     0.8324 nats\n"
        "undefined   -\n");
  CHECK(render_table(report, {}, {.digits = 2}) ==
        "empty_rows  1\n"
        "entropy     0.83 nats\n"
        "undefined   -\n");
}

TEST_CASE("a table of rows has units, dashes and one decimal point a column") {
  const test::SampleRows result = test::sample_rows();
  const Report report{"variance", {}, result_of(result), {}};
  CHECK(render_table(report, {}, {}) ==
        " d_k  scaling          variance  theory  keys  exact  top\n"
        "                         nats^2\n"
        "   1  none               0.3333       1     8  true   [0.5, 0]\n"
        "1024  softcap:50, \"x\"       NaN       -     -  false  []\n"
        "\n"
        "slope  1\n");
}

TEST_CASE("JSON carries command, version, options, notes and the result") {
  test::SampleOptions options;
  const test::SampleResult result = test::sample_result();
  const Report report{"attend", options_of(options), result_of(result), {"1 row has no key"}};
  const std::string text = render_json(report, {"output", "absent"});
  CHECK(text ==
        "{\n"
        "  \"command\": \"attend\",\n"
        "  \"version\": \"" ATTNLAB_VERSION
        "\",\n"
        "  \"options\": {\n"
        "    \"n\": 2,\n"
        "    \"softcap\": null\n"
        "  },\n"
        "  \"notes\": [\n"
        "    \"1 row has no key\"\n"
        "  ],\n"
        "  \"dtype\": \"float32\",\n"
        "  \"result\": {\n"
        "    \"output\": [\n"
        "      [0.10000000149011612, -2.5],\n"
        "      [0, 100.125]\n"
        "    ],\n"
        "    \"absent\": null,\n"
        "    \"empty_rows\": 1,\n"
        "    \"entropy\": 0.8323955,\n"
        "    \"undefined\": null\n"
        "  }\n"
        "}\n");
}

TEST_CASE("JSON names the narrowest dtype of the matrices, shown or not, and none without") {
  test::SampleResult result = test::sample_result();
  const auto text = [&] { return render_json({"attend", {}, result_of(result), {}}, {}); };
  result.weights = AnyTensor(Tensor<BFloat16>({1}));
  CHECK(test::contains(text(), "  \"dtype\": \"bfloat16\",\n"));
  result.weights.reset();
  CHECK(test::contains(text(), "  \"dtype\": \"float32\",\n"));
  result.output.reset();
  CHECK_FALSE(test::contains(text(), "dtype"));
}

TEST_CASE("rows in JSON are objects, one a line") {
  const test::SampleRows result = test::sample_rows();
  const std::string text = render_json({"variance", {}, result_of(result), {}}, {});
  CHECK(test::contains(text,
                       "    \"rows\": [\n"
                       "      {\"d_k\": 1, \"scaling\": \"none\", \"variance\": "
                       "0.3333333333333333, \"theory\": 1, \"keys\": 8, \"exact\": true, "
                       "\"top\": [0.5, -0.0]},\n"
                       "      {\"d_k\": 1024, \"scaling\": \"softcap:50, \\\"x\\\"\", "
                       "\"variance\": \"NaN\", \"theory\": null, \"keys\": null, \"exact\": false, "
                       "\"top\": []}\n"
                       "    ],\n"
                       "    \"slope\": 1\n"));
  CHECK(test::contains(text, "\"options\": {},\n  \"notes\": [],\n"));
}

TEST_CASE("a JSON matrix reads back bit for bit") {
  const double values[] = {0.1,  1. / 3, -0.0,     5e-324,    1.7976931348623157e308,
                           1e15, 1e-7,   HUGE_VAL, -HUGE_VAL, 123456789012345680.0,
                           2.5,  -1};
  Tensor<double> tensor({2, 2, 3});
  std::copy(std::begin(values), std::end(values), tensor.data());
  test::SampleResult result;
  result.output = AnyTensor(tensor);
  const std::string text = render_json({"attend", {}, result_of(result), {}}, {"output"});
  const AnyTensor back =
      tensor_from_json(parse_json(text, "result")["result"]["output"], "result", "output");
  REQUIRE(back.shape() == tensor.shape());
  for (Index i = 0; i < tensor.size(); ++i) {
    CHECK(std::bit_cast<std::uint64_t>(back.at(i)) == std::bit_cast<std::uint64_t>(tensor[i]));
  }
}

TEST_CASE("JSON escapes texts and replaces what is not UTF-8") {
  test::SampleRows result;
  result.rows.push_back({.scaling = "a\"\n\xff"});
  const std::string text = render_json({"variance", {}, result_of(result), {"\xfe"}}, {});
  const Json json = parse_json(text, "result");
  CHECK(json["result"]["rows"][0]["scaling"] == "a\"\n\xef\xbf\xbd");
}

TEST_CASE("JSON lines hold one row each") {
  const test::SampleRows rows = test::sample_rows();
  const std::string text = render_jsonl({"variance", {}, result_of(rows), {}}, {});
  CHECK(text ==
        "{\"d_k\": 1, \"scaling\": \"none\", \"variance\": 0.3333333333333333, \"theory\": 1, "
        "\"keys\": 8, \"exact\": true, \"top\": [0.5, -0.0]}\n"
        "{\"d_k\": 1024, \"scaling\": \"softcap:50, \\\"x\\\"\", \"variance\": \"NaN\", "
        "\"theory\": null, \"keys\": null, \"exact\": false, \"top\": []}\n");
  const test::SampleResult scalars = test::sample_result();
  CHECK(render_jsonl({"attend", {}, result_of(scalars), {}}, {}) ==
        "{\"empty_rows\": 1, \"entropy\": 0.8323955, \"undefined\": null}\n");
}

TEST_CASE("CSV quotes as RFC 4180 says and leaves undefined cells empty") {
  const test::SampleRows rows = test::sample_rows();
  CHECK(render_csv({"variance", {}, result_of(rows), {}}, {}) ==
        "d_k,scaling,variance,theory,keys,exact,top\n"
        "1,none,0.3333333333333333,1,8,true,\"[0.5, -0.0]\"\n"
        "1024,\"softcap:50, \"\"x\"\"\",NaN,,,false,\"[]\"\n");
  const test::SampleResult scalars = test::sample_result();
  CHECK(render_csv({"attend", {}, result_of(scalars), {}}, {}) ==
        "empty_rows,entropy,undefined\n"
        "1,0.8323955,\n");
}

struct Numbers {
  std::optional<AnyTensor> entropy, trace;
  std::vector<test::SampleRow> rows;
  static constexpr auto fields() {
    using R = Numbers;
    return std::tuple(field("entropy", &R::entropy, "", {.unit = "nats", .shape = "[..]"}),
                      field("trace", &R::trace, "", {.shape = "[..]"}),
                      field("rows", &R::rows, ""));
  }
};

TEST_CASE("a matrix of rank 0 is a number in every format") {
  Numbers result;
  result.entropy = AnyTensor(Tensor<double>(Shape{}, 0.5));
  result.trace = AnyTensor(Tensor<float>(Shape{}, 0.25f));
  const Report report{"softmax", {}, result_of(result), {}};
  CHECK(render_table(report, {"entropy", "trace"}, {}) == "entropy  0.5 nats\ntrace    0.25\n");
  CHECK(test::contains(render_json(report, {"entropy"}),
                       "{\n    \"entropy\": 0.5,\n    \"rows\": []\n  }"));
  CHECK(render_csv(report, {"trace"}) == "trace\n0.25\n");
  CHECK(render_jsonl(report, {"entropy", "trace"}) == "{\"entropy\": 0.5, \"trace\": 0.25}\n");
  CHECK_NOTHROW(check_format(Format::csv, columns_of<Numbers>(), {"trace"}));
  result.trace = AnyTensor(Tensor<float>({2}, {1, 2}));
  CHECK_THROWS_AS(render_csv({"softmax", {}, result_of(result), {}}, {"trace"}), InputError);
}

struct OneColumn {
  std::optional<double> mean;
  static constexpr auto fields() { return std::tuple(field("mean", &OneColumn::mean, "")); }
};
struct OneText {
  std::string name;
  static constexpr auto fields() { return std::tuple(field("name", &OneText::name, "")); }
};

TEST_CASE("a CSV line is never empty, and an empty text is no undefined cell") {
  const OneColumn undefined;
  CHECK(render_csv({"x", {}, result_of(undefined), {}}, {}) == "mean\n\"\"\n");
  const OneText text{"a\nb"};
  CHECK(render_csv({"x", {}, result_of(text), {}}, {}) == "name\n\"a\nb\"\n");
}

TEST_CASE("numbers in CSV read back as the same doubles") {
  for (const double value : {0.1, 1. / 3, 5e-324, 1.7976931348623157e308, 6.02e23, -0.0}) {
    const OneColumn result{value};
    const std::string text = render_csv({"x", {}, result_of(result), {}}, {});
    const double back = std::strtod(text.c_str() + text.find('\n'), nullptr);
    CHECK(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(value));
  }
}

TEST_CASE("csv and jsonl refuse matrices and point to --save") {
  const test::SampleResult result = test::sample_result();
  const Report report{"attend", {}, result_of(result), {}};
  CHECK_THROWS_AS(render_jsonl(report, {"output"}), InputError);
  CHECK_NOTHROW(check_format(Format::json, report.results, {"output"}));
  CHECK_NOTHROW(check_format(Format::csv, report.results, {}));
  CHECK_THROWS_AS(check_format(Format::csv, columns_of<test::SampleResult>(), {"output"}),
                  InputError);
  try {
    render_csv(report, {"output"});
    FAIL("no error");
  } catch (const InputError& error) {
    CHECK(error.field() == "format");
    CHECK(error.value() == "csv");
    CHECK(test::contains(error.rule(), "--save output=FILE"));
    CHECK(test::contains(error.rule(), "--show none"));
  }
}

OutputOptions show(const std::vector<std::string>& names) {
  OutputOptions output;
  output.show = names;
  return output;
}

TEST_CASE("what is shown follows --show, or the result's own choice") {
  const auto columns = columns_of<test::SampleResult>();
  using Names = std::vector<std::string>;
  CHECK(shown_matrices(columns, {}) == Names{"output"});
  CHECK(shown_matrices(columns, show({"none"})).empty());
  CHECK(shown_matrices(columns, show({"all"})) == kAll);
  CHECK(shown_matrices(columns, show({"absent", "weights"})) == Names{"weights", "absent"});
  try {
    shown_matrices(columns, show({"wieghts"}));
    FAIL("no error");
  } catch (const InputError& error) {
    CHECK(error.field() == "show");
    CHECK(test::contains(error.rule(), "did you mean weights?"));
  }
}

TEST_CASE("tables of rows end at every width") {
  const test::SampleRows result = test::sample_rows();
  for (int width = 1; width <= 200; ++width) {
    const std::string text =
        render_table({"variance", {}, result_of(result), {}}, {}, {.width = width});
    CHECK(test::longest_line(text) <= std::max(width, 30));
    CHECK(test::contains(text, "nats^2"));
  }
}

TEST_CASE("without colour no renderer writes an escape") {
  const test::SampleResult result = test::sample_result();
  const Report report{"attend", {}, result_of(result), {}};
  CHECK_FALSE(test::contains(render_table(report, kAll, {}), "\x1b"));
  CHECK_FALSE(test::contains(render_trace(report, {}), "\x1b"));
  CHECK_FALSE(test::contains(heat_map(*result.weights, {}), "\x1b"));
  CHECK(test::contains(render_table(report, kAll, {.color = true}), "\x1b[1mweights"));
  CHECK(test::contains(render_trace(report, {.color = true}), "\x1b[1m1. weights"));
}

TEST_CASE("a table of many rows shows the first and the last") {
  test::SampleRows result;
  for (Index i = 0; i < 1000; ++i) {
    test::SampleRow row;
    row.d_k = i;
    result.rows.push_back(row);
  }
  const std::string table = render_table({"many", {}, result_of(result), {}}, {}, {});
  CHECK(test::contains(table, "\n  0 "));
  CHECK(test::contains(table, "\n999 "));
  CHECK(test::contains(table, "..."));
  CHECK_FALSE(test::contains(table, "\n500 "));
  CHECK(std::count(table.begin(), table.end(), '\n') < 60);
  const Report report{"many", {}, result_of(result), {}};
  CHECK(test::contains(render_json(report, {}), "\"d_k\": 500,"));
  CHECK(test::contains(render_csv(report, {}), "\n500,"));
}

}  // namespace
}  // namespace attnlab
