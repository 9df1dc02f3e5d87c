#include "attnlab/experiments/compare.h"

#include <cmath>
#include <cstdint>

#include "attnlab/core/error.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

// compare of two files holding these objects under "result".
CompareResult compare_results(const std::string& a, const std::string& b) {
  const TemporaryFolder folder;
  CompareOptions options;
  options.a.path = folder.write("a.json", R"({"version": "1", "result": )" + a + "}");
  options.b.path = folder.write("b.json", R"({"version": "1", "result": )" + b + "}");
  return compare(options, {});
}

TEST_CASE("results that differ in lists within rows are apart") {
  const std::string rows = R"({"rows": [{"top_keys": [0, 1]}, {"top_keys": [2]}]})";
  CHECK(compare_results(rows, rows).equal);
  const CompareResult other =
      compare_results(rows, R"({"rows": [{"top_keys": [0, 1]}, {"top_keys": [3]}]})");
  CHECK_FALSE(other.equal);
  REQUIRE(other.rows.size() == 1);
  CHECK(other.rows[0].where == "[1, 0]");
  CHECK(*other.rows[0].a == 2);
  CHECK(*other.rows[0].b == 3);
  // As many numbers, in lists of other lengths.
  CHECK(refusal([&] {
          compare_results(rows, R"({"rows": [{"top_keys": [0]}, {"top_keys": [1, 2]}]})");
        }).find("lengths") != std::string::npos);
}

TEST_CASE("results that differ in text, booleans or undefined values are apart") {
  const auto differ = [](const std::string& a, const std::string& b) {
    CHECK(compare_results(a, a).equal);
    const CompareResult result = compare_results(a, b);
    CHECK_FALSE(result.equal);
    return result;
  };
  const CompareResult texts = differ(R"({"rows": [{"d": 1, "method": "stable"}]})",
                                     R"({"rows": [{"d": 1, "method": "naive"}]})");
  CHECK(mentions(texts.notes, R"(method [0]: a has "stable", b has "naive")"));
  differ(R"({"rows": [{"d": 1, "ok": true}]})", R"({"rows": [{"d": 1, "ok": false}]})");
  const CompareResult undefined =
      differ(R"({"rows": [{"entropy": null}]})", R"({"rows": [{"entropy": 0.5}]})");
  CHECK(*undefined.rows[0].b == .5);
  CHECK_FALSE(undefined.rows[0].a.has_value());
  differ(R"({"rows": [{"entropy": "NaN"}]})", R"({"rows": [{"entropy": null}]})");
  differ(R"({"error": null})", R"({"error": 1})");
  differ(R"({"equal": true})", R"({"equal": false})");
}

TEST_CASE("what only one result holds is apart") {
  const CompareResult result = compare_results(R"({"output": [[1]], "weights": [[1, 2]]})",
                                               R"({"output": [[1]], "empty_rows": 0})");
  CHECK_FALSE(result.equal);
  REQUIRE(result.rows.size() == 3);
  CHECK(result.rows[0].equal);
  CHECK(result.rows[1].name == "weights");
  CHECK(result.rows[1].apart == 2);
  CHECK(result.rows[2].name == "empty_rows");
  CHECK(mentions(result.notes, "only b has empty_rows"));
}

TEST_CASE("integers are compared as integers") {
  constexpr std::int64_t kBig = std::int64_t{1} << 53;
  CompareOptions options;
  options.atol = options.rtol = 0;
  options.a = given<std::int64_t>({2}, {kBig + 1, 5});
  options.b = given<std::int64_t>({2}, {kBig, 5});
  const CompareResult result = compare(options, {});
  CHECK_FALSE(result.equal);
  CHECK(result.rows[0].apart == 1);
  CHECK(*result.rows[0].max_abs_error == 1);
  CHECK(result.rows[0].where == "[0]");
  options.b = options.a;
  CHECK(compare(options, {}).equal);
}

TEST_CASE("integers of both signs and 64 bits have their distance") {
  CompareOptions options;
  const auto distance = [&] { return *compare(options, {}).rows[0].max_abs_error; };
  options.a = given<std::int64_t>({1}, {-3});
  options.b = given<std::int64_t>({1}, {4});
  CHECK(distance() == 7);
  options.b = given<std::uint64_t>({1}, {UINT64_MAX});
  CHECK(distance() == Approx(18446744073709551618.0));
  options.a = given<std::int64_t>({1}, {INT64_MIN});
  CHECK(distance() == Approx(27670116110564327424.0));
  options.a = given<std::uint64_t>({1}, {UINT64_MAX - 1});
  CHECK(distance() == 1);
  options.a = given<bool>({1}, {true});
  options.b = given<bool>({1}, {false});
  CHECK(distance() == 1);
}

TEST_CASE("large and small magnitudes have a relative norm and a correlation") {
  CompareOptions options;
  for (const double size : {1e200, 1.0, 1e-200}) {
    options.a = given<double>({3}, {1 * size, 2 * size, 4 * size});
    options.b = given<double>({3}, {1 * size, 2 * size, 3 * size});
    const CompareRow row = compare(options, {}).rows[0];
    CHECK(row.relative_norm.value() == Approx(1 / std::sqrt(14)));
    CHECK(row.correlation.value() == Approx(0.9819805));
  }
}

TEST_CASE("errors are counted by decade") {
  CompareOptions options;
  options.a = given<double>({7}, {1, 1 + 0x1p-13, 1.5, 0.75, 20, NAN, 1});
  options.b = given<double>({7}, {1, 1, 1, 1, 1, NAN, NAN});
  const CompareRow row = compare(options, {}).rows[0];
  CHECK(row.exact == 2);
  // 2^-13 is 1.2e-4; what has no distance is in none.
  CHECK(row.decades == std::vector<Index>{-4, -3, -2, -1, 0, 1});
  CHECK(row.in_decade == std::vector<Index>{1, 0, 0, 2, 0, 1});
  CHECK(row.apart == 5);
  CHECK(row.first_apart.value() == "[1]");
  CHECK(row.where == "[6]");
}

TEST_CASE("a decade begins with its power of ten, from the smallest number to the largest") {
  CompareOptions options;
  options.b = given<double>({1}, {0});
  const auto decade = [&](double error) {
    options.a = given<double>({1}, {error});
    return compare(options, {}).rows[0].decades.at(0);
  };
  CHECK(decade(1e-7) == -7);
  CHECK(decade(9.99e-8) == -8);
  CHECK(decade(1) == 0);
  CHECK(decade(9.99) == 0);
  CHECK(decade(-1000) == 3);
  CHECK(decade(5e-324) == -324);
  CHECK(decade(1.7e308) == 308);
}

TEST_CASE("units in the last place are of the narrower dtype, and integers have none") {
  CompareOptions options;
  options.a = given<float>({2}, {1.0f, 2.0f});
  options.b = given<double>({2}, {1 + 3 * 0x1p-23, 2});
  CHECK(*compare(options, {}).rows[0].max_ulp == 3);
  options.a = given<double>({2}, {1, 2});
  CHECK(*compare(options, {}).rows[0].max_ulp == 3 * 0x1p29);
  options.a = given<std::int64_t>({2}, {1, 2});
  options.b = options.a;
  CHECK_FALSE(compare(options, {}).rows[0].first_apart.has_value());
  options.b = given<std::int64_t>({2}, {1, 3});
  CHECK_FALSE(compare(options, {}).rows[0].max_ulp.has_value());
}

TEST_CASE("numbers of a result have the tolerance of the dtype it was computed in") {
  const TemporaryFolder folder;
  const auto compared = [&](const std::string& said, const std::string& a, const std::string& b) {
    CompareOptions options;
    options.a.path = folder.write("a.json", "{" + said + R"("version": "1", "result": )" + a + "}");
    options.b.path = folder.write("b.json", "{" + said + R"("version": "1", "result": )" + b + "}");
    return compare(options, {}).rows.at(0);
  };
  const std::string one = R"({"output": [[1, 2]]})", near = R"({"output": [[1.0000005, 2]]})";
  CHECK_FALSE(compared("", one, near).equal);
  CHECK(compared(R"("dtype": "float32", )", one, near).equal);
  CHECK(compared(R"("options": {"dtype": "float32"}, )", one, near).equal);
  CHECK_FALSE(compared(R"("options": {"dtype": "auto"}, )", one, near).equal);
  CHECK_FALSE(
      compared(R"("dtype": "float64", "options": {"dtype": "float16"}, )", one, near).equal);
  CHECK_FALSE(compared(R"("dtype": ["float16"], )", one, near).equal);
  const CompareRow row =
      compared(R"("dtype": "bfloat16", )", one, R"({"output": [[1.0078125, 2]]})");
  CHECK(row.dtype_a == "bfloat16");
  CHECK(row.equal);
  CHECK(*row.max_ulp == 1);
  // Scalars and columns, too, but not what is counted.
  const std::string half = R"("dtype": "float16", )";
  CHECK(compared(half, R"({"entropy": 1.5})", R"({"entropy": 1.5005})").equal);
  CHECK_FALSE(compared(half, R"({"empty_rows": 2000})", R"({"empty_rows": 2001})").equal);
  CHECK_FALSE(compared(half, R"({"rows": [{"n": 2000}]})", R"({"rows": [{"n": 2001}]})").equal);
}

TEST_CASE("an object that is no result is compared by its names, too") {
  const TemporaryFolder folder;
  CompareOptions options;
  options.a.path = folder.write("a.json", R"({"x": [1, 2], "y": [[3]]})");
  options.b.path = folder.write("b.json", R"({"y": [[3]], "x": [1, 2]})");
  const CompareResult result = compare(options, {});
  CHECK(result.equal);
  REQUIRE(result.rows.size() == 2);
  CHECK(result.rows[0].name == "x");
}

TEST_CASE("shapes that differ are told with their files") {
  const TemporaryFolder folder;
  CompareOptions options;
  options.a.path = folder.write("a.csv", "1,2\n");
  options.b.path = folder.write("b.csv", "1,2,3\n");
  const std::string text = refusal([&] { compare(options, {}); });
  CHECK(text.find("a.csv: tensor: got [1, 2]") != std::string::npos);
  CHECK(text.find("b.csv has [1, 3]") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
