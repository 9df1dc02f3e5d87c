#include <cmath>
#include <limits>

#include "app/render_sample.h"
#include "catch.h"
#include "render/axes.h"

namespace attnlab {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

AnyTensor counting(const Shape& shape) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<double>(i);
  return tensor;
}

TEST_CASE("columns stand at their decimal point in one format") {
  const AnyTensor tensor = Tensor<double>({2, 3}, {0.125, -2.5, 3, 0, 100.125, -0.0});
  CHECK(matrix_text(tensor, {}) ==
        "    0.1   -2.5    3.0\n"
        "    0    100.1    0\n");
}

TEST_CASE("what every element can do without is not shown") {
  CHECK(matrix_text(AnyTensor(Tensor<float>({3}, {1, 2, 3})), {}) == "  1  2  3\n");
  CHECK(matrix_text(AnyTensor(Tensor<float>({2}, {0.1f, 0.5f})), {}) == "  0.1  0.5\n");
  CHECK(matrix_text(AnyTensor(Tensor<BFloat16>({1}, {BFloat16(0.5f)})), {}) == "  0.5\n");
  CHECK(matrix_text(AnyTensor(Tensor<bool>({2}, {true, false})), {}) == "  1  0\n");
}

TEST_CASE("a nonzero element never shows as zero") {
  const AnyTensor saturated = Tensor<double>({1, 3}, {2.0610600462e-9, 4.53e-5, 0.9999546});
  CHECK(matrix_text(saturated, {}) == "  2.061e-09  4.530e-05  1.000e+00\n");
  const AnyTensor small = Tensor<double>({1, 2}, {0.00031, 2.51234});
  CHECK(matrix_text(small, {}) == "  0.0003  2.5123\n");
  const AnyTensor tiny = Tensor<double>({1, 2}, {0.00001, 0.5});
  CHECK(matrix_text(tiny, {}) == "  0.00001  0.50000\n");
}

TEST_CASE("large numbers are scientific from 1e8 on, integers never") {
  CHECK(matrix_text(AnyTensor(Tensor<double>({1}, {1e300})), {}) == "  1e+300\n");
  CHECK(matrix_text(AnyTensor(Tensor<double>({1}, {12345678})), {}) == "  12345678\n");
  CHECK(matrix_text(AnyTensor(Tensor<std::int64_t>({1}, {9007199254740993})), {}) ==
        "  9007199254740993\n");
}

TEST_CASE("non-finite elements are named and leave the format alone") {
  const AnyTensor tensor = Tensor<double>({1, 4}, {0.25, kNan, kInf, -kInf});
  CHECK(matrix_text(tensor, {}) == "  0.25   NaN   inf  -inf\n");
  CHECK(matrix_text(AnyTensor(Tensor<double>({1}, {-kInf})), {}) == "  -inf\n");
}

TEST_CASE("digits are significant digits of the largest element") {
  const AnyTensor tensor = Tensor<double>({1, 2}, {1. / 3, 200. / 3});
  CHECK(matrix_text(tensor, {.digits = 3}) == "   0.3  66.7\n");
  CHECK(matrix_text(tensor, {.digits = 6}) == "   0.3333  66.6667\n");
}

TEST_CASE("more than 1000 elements are elided to three at every end") {
  CHECK(matrix_text(counting({40, 26}), {}) ==
        "     0     1     2  ...    23    24    25\n"
        "    26    27    28  ...    49    50    51\n"
        "    52    53    54  ...    75    76    77\n"
        "  ...\n"
        "   962   963   964  ...   985   986   987\n"
        "   988   989   990  ...  1011  1012  1013\n"
        "  1014  1015  1016  ...  1037  1038  1039\n");
  CHECK(matrix_text(counting({501, 2}), {}) ==
        "     0     1\n"
        "     2     3\n"
        "     4     5\n"
        "  ...\n"
        "   996   997\n"
        "   998   999\n"
        "  1000  1001\n");
}

TEST_CASE("columns beyond the width are left out in the middle") {
  CHECK(matrix_text(counting({1, 30}), {.width = 24}) == "   0   1  ...  28  29\n");
  CHECK(matrix_text(counting({1, 30}), {.width = 25}) == "   0   1   2  ...  28  29\n");
}

TEST_CASE("every head is a block of its own") {
  CHECK(matrix_text(counting({1, 2, 1, 2}), {}) == "  head 0\n  0  1\n\n  head 1\n  2  3\n");
  CHECK(matrix_text(counting({2, 2, 1, 1}), {}) ==
        "  batch 0, head 0\n  0\n\n  batch 0, head 1\n  1\n\n"
        "  batch 1, head 0\n  2\n\n  batch 1, head 1\n  3\n");
  CHECK(matrix_text(counting({2, 1, 2}), "[.., n, d]", {}) ==
        "  batch 0\n  0  1\n\n  batch 1\n  2  3\n");
  const std::string many = matrix_text(counting({20, 1, 1}), {});
  CHECK(test::contains(many, "head 2\n   2\n\n  ...\n\n  head 17\n"));
  CHECK_FALSE(test::contains(many, "head 3\n"));
}

TEST_CASE("rows and columns are named by the tokens of their axis") {
  const Style style{.row_names = {"我", "cat"}, .column_names = {"the", "e\u0301", "animal"}};
  CHECK(matrix_text(counting({2, 3}), style) ==
        "       the  e\u0301  animal\n"
        "  我     0  1       2\n"
        "  cat    3  4       5\n");
  // Widths of a head are no tokens, even where there are as many.
  CHECK(matrix_text(counting({2, 3}), "[.., n, d_k]", style) ==
        "  我   0  1  2\n"
        "  cat  3  4  5\n");
  CHECK(matrix_text(counting({3, 1}), "[.., m, d_k]", style) ==
        "  the     0\n"
        "  e\u0301       1\n"
        "  animal  2\n");
  CHECK(matrix_text(counting({1, 1}), style) == "  0\n");
}

TEST_CASE("one number and no number are matrices too") {
  CHECK(matrix_text(counting({}), {}) == "  0\n");
  CHECK(matrix_text(counting({0, 3}), {}) == "  (no elements)\n");
  CHECK(matrix_text(counting({3, 0}), {}) == "  (no elements)\n");
}

TEST_CASE("a matrix fits every width that has room for two columns") {
  Tensor<double> tensor({9, 80});
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = std::sin(static_cast<double>(i * i));
  for (int width = 1; width <= 200; ++width) {
    const int longest = test::longest_line(matrix_text(AnyTensor(tensor), {.width = width}));
    CHECK(longest <= std::max(width, 24));
  }
}

TEST_CASE("axes are matched from the last") {
  using Names = std::vector<std::string>;
  CHECK(axis_names("[.., heads, n, m]", 4) == Names{"batch", "heads", "n", "m"});
  CHECK(axis_names("[.., heads, n, m]", 2) == Names{"n", "m"});
  CHECK(axis_names("[n, d]", 3) == Names{"", "n", "d"});
  CHECK(axis_names("", 3) == Names{"heads", "", ""});
}

}  // namespace
}  // namespace attnlab
