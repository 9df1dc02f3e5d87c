#include "attnlab/io/csv.h"

#include <limits>

#include "attnlab/io/number_text.h"
#include "catch.h"
#include "files.h"
#include "samples.h"

namespace attnlab {
namespace {

using namespace test;

std::string csv_error(const std::string& text, char separator = ',') {
  return error_of([&] { parse_csv(text, separator, "x.csv"); });
}

std::vector<double> csv_values(const std::string& text, char separator = ',') {
  return values(parse_csv(text, separator, "x.csv"));
}

TEST_CASE("a CSV file is a float64 matrix of its rows") {
  const AnyTensor matrix = parse_csv("1,2,3\n4,5,6\n", ',', "x.csv");
  CHECK(matrix.dtype() == DType::float64);
  CHECK(matrix.shape() == Shape{2, 3});
  CHECK(values(matrix) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(parse_csv("1,2,3", ',', "x.csv").shape() == Shape{1, 3});
  CHECK(parse_csv("1\n2\n3\n", ',', "x.csv").shape() == Shape{3, 1});
  CHECK(parse_csv("7", ',', "x.csv").shape() == Shape{1, 1});
}

TEST_CASE("a CSV file may have a byte-order mark, CRLF, blanks, plus signs and final newlines") {
  const AnyTensor matrix = read(fixture("bom_crlf.csv"));
  CHECK(matrix.shape() == Shape{2, 2});
  CHECK(values(matrix) == std::vector<double>{1, 2, 3, 4});
  CHECK(csv_values(" 1 ,\t+2\n-3,.5e1 \n\n \r\n\n") == std::vector<double>{1, 2, -3, 5});
  CHECK(csv_values("1,2\r\n\r\n") == std::vector<double>{1, 2});
  CHECK(csv_values("1,2\n  ") == std::vector<double>{1, 2});
}

TEST_CASE("a CSV file of rows that are not alike is refused with the line") {
  CHECK(contains(read_error(fixture("ragged.csv")),
                 "ragged.csv: line 2: got 1 value, need 2 as in line 1"));
  CHECK(contains(read_error(fixture("trail_comma.csv")),
                 "line 1, column 3: the cell is empty, need a number"));
  CHECK(contains(read_error(fixture("blank.csv")), "line 2: the line is blank"));
  CHECK(contains(csv_error("\n1,2\n"), "line 1: the line is blank"));
  CHECK(contains(csv_error("1,2\n3,4,5\n"), "line 2: got 3 values, need 2 as in line 1"));
  CHECK(contains(csv_error("1,,2\n"), "line 1, column 2: the cell is empty"));
  CHECK(contains(csv_error(",1\n"), "line 1, column 1: the cell is empty"));
}

TEST_CASE("an empty CSV file is refused") {
  CHECK(contains(read_error(fixture("empty.csv")), "empty.csv: is empty"));
  CHECK(contains(csv_error("\n\n"), "is empty"));
  CHECK(contains(csv_error("\xEF\xBB\xBF"), "is empty"));
}

TEST_CASE("decimal commas, semicolons and UTF-16 are named for what they are") {
  CHECK(contains(read_error(fixture("deccomma.csv")),
                 "line 1: got 1,5;2,5, decimal commas are not read"));
  CHECK(contains(csv_error("1;2\n"), "semicolons are not read"));
  CHECK(contains(csv_error("1,5\t2\n", '\t'), "commas are not read"));
  CHECK(contains(csv_error(std::string("\xFF\xFE\x31\x00", 4)), "is not UTF-8"));
  CHECK(contains(csv_error(std::string("\xFE\xFF\x00\x31", 4)), "is not UTF-8"));
  CHECK(contains(csv_error(std::string("1\0,\0", 4)), "is not UTF-8"));
  CHECK(contains(csv_error(std::string("1,2\n3,\0004\n", 9)), "line 2, column 3: a NUL byte"));
}

TEST_CASE("a CSV cell that is no number is refused with line and column") {
  CHECK(contains(csv_error("1,2\n3,x\n"), "line 2, column 2: got x, need a number"));
  CHECK(contains(csv_error("query,key\n1,2\n"), "line 1, column 1: got query, need a number"));
  for (const std::string cell : {"nan", "inf", "-inf", "infinity", "0x10",  "1e",    "1.5.2",
                                 "1 2", "--1", "+-1",  "-+1",      "1e+-5", "\"1\"", "1d0",
                                 "e5",  ".",   "-",    "+",        "None",  "1_000", "NaN(1)"}) {
    INFO(cell);
    CHECK(contains(csv_error("1," + cell), "line 1, column 2: got " + cell + ", need a number"));
  }
  CHECK(contains(csv_error("1e400"), "line 1, column 1: got 1e400, out of the range of float64"));
  CHECK(contains(csv_error("1,-1e99999999999999999999"), "out of the range of float64"));
  CHECK(contains(csv_error(std::string("1,\x1b[31m")), "got \\x1b[31m"));
}

TEST_CASE("the three names are the only cells that are not finite numbers") {
  const auto cells = csv_values("NaN,Infinity, -Infinity");
  CHECK(std::isnan(cells[0]));
  CHECK(cells[1] == std::numeric_limits<double>::infinity());
  CHECK(cells[2] == -std::numeric_limits<double>::infinity());
}

TEST_CASE("a number too small for float64 rounds to zero") {
  CHECK(parse_number("1e-400") == 0.0);
  CHECK(std::signbit(*parse_number("-1e-99999999999999999999")));
  CHECK(parse_number(std::string("0.") + std::string(400, '0') + "1") == 0.0);
  CHECK(parse_number(std::string("0.") + std::string(400, '0') + "1e401") == 1.0);
  CHECK(parse_number("123e-400") == 0.0);
  CHECK(parse_number("1e-9223372036854775807") == 0.0);
  CHECK(std::isinf(*parse_number(std::string("1") + std::string(400, '0'))));
  CHECK(std::isinf(*parse_number("0.001e400")));
  CHECK(std::isinf(*parse_number("1e+400")));
  CHECK(parse_number("5e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(parse_number("0e99999") == 0.0);
}

TEST_CASE("numbers are written with the fewest digits that read back the same") {
  const auto text = [](double value) {
    std::string out;
    append_number(out, value);
    return out;
  };
  CHECK(text(0.1) == "0.1");
  CHECK(text(6.0) == "6");
  CHECK(text(-0.0) == "-0.0");
  CHECK(text(100000.0) == "100000");
  CHECK(text(1e300) == "1e+300");
  CHECK(text(5e-324) == "5e-324");
  CHECK(text(0.1f) == "0.10000000149011612");
  CHECK(text(1.0 / 3) == "0.3333333333333333");
  CHECK(text(-std::numeric_limits<double>::infinity()) == "-Infinity");
}

TEST_CASE("TSV separates by tabs") {
  CHECK(csv_values("1\t2\n3\t 4 \n", '\t') == std::vector<double>{1, 2, 3, 4});
  CHECK(contains(csv_error("1\t2\t\n", '\t'), "line 1, column 3: the cell is empty"));
  CHECK(contains(csv_error("1 2\n", '\t'), "got 1 2, need a number"));
}

TEST_CASE("every type is written to CSV and TSV and read back with the same values") {
  const TemporaryFolder folder;
  for (const std::string name : {"x.csv", "x.tsv"}) {
    for (const DType dtype : kDTypes) {
      INFO(name << " " << dtype_name(dtype));
      const AnyTensor tensor = awkward(dtype, {5, 3});
      write_tensor(folder.path(name), tensor, "save");
      CHECK(same_values(read(folder.path(name)), tensor));
    }
  }
}

TEST_CASE("a CSV file has one line a row, a vector or number being one") {
  const TemporaryFolder folder;
  const auto written = [&](const AnyTensor& tensor) {
    write_tensor(folder.path("x.csv"), tensor, "save");
    return bytes_of(folder.path("x.csv"));
  };
  CHECK(written(Tensor<double>({2, 2}, {1, -0.0, 0.5, 1e22})) == "1,-0.0\n0.5,1e+22\n");
  CHECK(written(Tensor<float>({3}, {1, 2, 3})) == "1,2,3\n");
  CHECK(written(Tensor<double>(Shape{}, {4})) == "4\n");
  CHECK(written(Tensor<bool>({2, 1}, {true, false})) == "1\n0\n");
  CHECK(written(Tensor<std::int64_t>({1}, {9007199254740993})) == "9007199254740993\n");
}

TEST_CASE("what is no table is not written to CSV") {
  const TemporaryFolder folder;
  const auto error = [&](const Shape& shape) {
    return error_of([&] { write_tensor(folder.path("x.csv"), Tensor<double>(shape), "save"); });
  };
  CHECK(contains(error({2, 3, 4}), "a tensor [2, 3, 4] is no table: need .npy or .json"));
  CHECK(contains(error({1, 1, 1, 1}), "save: got"));
  CHECK(contains(error({0, 3}), "a tensor [0, 3] is no table"));
  CHECK(folder.entries() == 0);
}

}  // namespace
}  // namespace attnlab
