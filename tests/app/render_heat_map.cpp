#include <cmath>
#include <limits>
#include <set>

#include "app/render_sample.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// The background colours in `text`, in order.
std::vector<std::string> backgrounds(const std::string& text) {
  std::vector<std::string> colors;
  for (auto at = text.find("\x1b[48"); at != std::string::npos; at = text.find("\x1b[48", at + 1)) {
    colors.push_back(text.substr(at, text.find('m', at) - at));
  }
  return colors;
}

TEST_CASE("weights are shaded from their minimum to their maximum") {
  const AnyTensor weights = Tensor<double>({2, 3}, {1, 0, 0, 0.25, 0.5, 0.75});
  CHECK(heat_map(weights, {}) ==
        "    0 1 2\n"
        "  0 ██\n"
        "  1 ░░▒▒▓▓\n"
        "\n"
        "  min 0 [  ░░▒▒▓▓██] max 1\n");
}

TEST_CASE("a constant matrix has one colour and its minimum is its maximum") {
  const AnyTensor thirds = Tensor<double>({2, 2}, 1. / 3);
  CHECK(heat_map(thirds, {}) ==
        "    0 1\n"
        "  0 ▒▒▒▒\n"
        "  1 ▒▒▒▒\n"
        "\n"
        "  min = max = 0.3333  ▒▒\n");
  const auto colors = backgrounds(heat_map(thirds, {.color = true}));
  REQUIRE(colors.size() == 5);
  CHECK(std::set<std::string>(colors.begin(), colors.end()).size() == 1);
}

TEST_CASE("NaN and the infinities have marks and leave the other cells alone") {
  const AnyTensor clean = Tensor<double>({2, 3}, {0, 1, 0.5, 0.25, 0.75, 1});
  const AnyTensor marked = Tensor<double>({2, 3}, {0, kNan, 0.5, kInf, 0.75, -kInf});
  CHECK(heat_map(marked, {}) ==
        "    0 1 2\n"
        "  0   ??▓▓\n"
        "  1 ++██--\n"
        "\n"
        "  min 0 [  ░░▒▒▓▓██] max 0.75   ?? NaN   ++ inf   -- -inf\n");
  const AnyTensor one_nan = Tensor<double>({2, 3}, {0, kNan, 0.5, 0.25, 0.75, 1});
  for (const bool true_color : {false, true}) {
    const Style style{.color = true, .true_color = true_color};
    const auto before = backgrounds(heat_map(clean, style));
    const auto after = backgrounds(heat_map(one_nan, style));
    for (const std::size_t cell : {0U, 2U, 3U, 4U, 5U}) CHECK(before[cell] == after[cell]);
    CHECK(before[1] != after[1]);
  }
  CHECK(test::contains(heat_map(AnyTensor(Tensor<double>({1, 1}, kNan)), {}), "no finite values"));
}

TEST_CASE("a matrix of both signs is scaled evenly about zero") {
  const AnyTensor signs = Tensor<double>({1, 4}, {-2, -1, 0, 1});
  CHECK(heat_map(signs, {}) ==
        "    0 1 2 3\n"
        "  0 -█-▒  ▒▒\n"
        "\n"
        "  -2 [-█-▓-▒-░  ░░▒▒▓▓██] 2, 0 in the middle; min -2, max 1\n");
  const auto colors = backgrounds(heat_map(signs, {.color = true}));
  CHECK(colors[1] != colors[3]);
}

TEST_CASE("extreme ranges do not overflow the scale") {
  const double huge = std::numeric_limits<double>::max();
  CHECK(test::contains(heat_map(AnyTensor(Tensor<double>({1, 2}, {-huge, huge})), {}), "-███"));
  CHECK(test::contains(heat_map(AnyTensor(Tensor<double>({1, 3}, {0, huge / 2, huge})), {}),
                       "  ▒▒██"));
}

TEST_CASE("short names stand over wide cells, long ones upright") {
  const AnyTensor weights = Tensor<double>({2, 2}, {1, 0, 0, 1});
  const std::vector<std::string> tokens = {"我", "animal"};
  CHECK(heat_map(weights, {.row_names = tokens, .column_names = tokens}) ==
        "         我     animal\n"
        "  我     ███████\n"
        "  animal        ███████\n"
        "\n"
        "  min 0 [  ░░▒▒▓▓██] max 1\n");
  CHECK(heat_map(weights, {.width = 20, .row_names = tokens, .column_names = tokens}) ==
        "           a\n"
        "           n\n"
        "           i\n"
        "           m\n"
        "           a\n"
        "         我l\n"
        "  我     ██\n"
        "  animal   ██\n"
        "\n"
        "  min 0 [  ░░▒▒▓▓██] max 1\n");
  const std::string ellipsis =
      heat_map(weights, {.width = 40, .column_names = {"a", "a name of more than twelve"}});
  CHECK(test::contains(ellipsis, "     …\n") == false);
  CHECK(test::contains(ellipsis, "    a …\n"));
}

TEST_CASE("statistics stand beside their rows") {
  const AnyTensor weights = Tensor<double>({2, 2}, {1, 0, 0.5, 0.5});
  const RowStatistics statistics{{"max", "keys"}, {{"1", "1"}, {"0.5", "2"}}};
  CHECK(heat_map(weights, "", {}, statistics) ==
        "    0 1   max  keys\n"
        "  0 ██    1       1\n"
        "  1 ▒▒▒▒  0.5     2\n"
        "\n"
        "  min 0 [  ░░▒▒▓▓██] max 1\n");
}

TEST_CASE("heads share one scale") {
  const AnyTensor weights = Tensor<double>({2, 1, 2}, {0, 0.5, 0.5, 1});
  CHECK(heat_map(weights, {}) ==
        "  head 0\n"
        "    0 1\n"
        "  0   ▒▒\n"
        "\n"
        "  head 1\n"
        "    0 1\n"
        "  0 ▒▒██\n"
        "\n"
        "  min 0 [  ░░▒▒▓▓██] max 1\n");
}

TEST_CASE("a map wider than the terminal or longer than a screen is elided") {
  const AnyTensor large = Tensor<float>({100, 30}, 1.0f);
  const std::string text = heat_map(large, {.width = 20});
  CHECK(test::contains(text, "      0     ...\n  0   "));
  INFO(text);
  CHECK(test::contains(text, "\n  23  ▒▒▒▒▒▒...▒▒▒▒\n  ...\n  76  "));
  CHECK_FALSE(test::contains(text, "\n  24 "));
}

TEST_CASE("a heat map ends at every width and fits what has room for it") {
  const AnyTensor large = Tensor<float>({5, 300}, 1.0f);
  const std::vector<std::string> names(300, "注意力");
  for (int width = 1; width <= 200; ++width) {
    const std::string text =
        heat_map(large, {.width = width, .color = true, .column_names = names});
    const std::string first_row = text.substr(text.find("\n  0 ") + 1);
    const auto cells =
        static_cast<int>(backgrounds(first_row.substr(0, first_row.find('\n'))).size());
    CHECK(4 + 2 * cells + 3 <= std::max(width, 11));
  }
}

TEST_CASE("colour is 256 unless the terminal knows more") {
  const AnyTensor weights = Tensor<double>({1, 2}, {0, 1});
  CHECK(test::contains(heat_map(weights, {.color = true}), "\x1b[48;5;124m  \x1b[0m"));
  CHECK(test::contains(heat_map(weights, {.color = true, .true_color = true}),
                       "\x1b[48;2;190;35;20m  \x1b[0m"));
}

TEST_CASE("a heat map of nothing says so") {
  CHECK(heat_map(AnyTensor(Tensor<double>(Shape{0, 3})), {}) == "  (no elements)\n");
}

}  // namespace
}  // namespace attnlab
