#include "catch.h"
#include "render/rounded_text.h"
#include "render/text_table.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

TEST_CASE("text is measured in terminal columns") {
  CHECK(display_width("weights") == 7);
  CHECK(display_width("注意力") == 6);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("é") == 1);
  CHECK(display_width("😀") == 2);
  CHECK(display_width("한국") == 4);
  CHECK(display_width("\xff\xfe") == 2);
  CHECK(display_width("") == 0);
}

TEST_CASE("a glyph keeps its combining marks") {
  CHECK(glyphs("e\u0301力x") == std::vector<std::string>{"e\u0301", "力", "x"});
}

TEST_CASE("clipping counts columns and ends in an ellipsis") {
  CHECK(clip("animal", 6) == "animal");
  CHECK(clip("animal", 4) == "ani…");
  CHECK(clip("注意力", 5) == "注意…");
  CHECK(clip("注意力", 4) == "注…");
  CHECK(clip("abc", 1) == "…");
}

TEST_CASE("a token cannot steer the terminal") {
  CHECK(clip("\x1b[31mred\n", 40) == "\\x1b[31mred\\x0a");
}

TEST_CASE("padding fills to display columns") {
  CHECK(pad_right("力", 4) == "力  ");
  CHECK(pad_left("力", 4) == "  力");
  CHECK(pad_left("long", 2) == "long");
}

TEST_CASE("numbers for people are rounded to significant digits") {
  CHECK(significant_text(0.09003057317038046, 4) == "0.09003");
  CHECK(significant_text(1023.4, 4) == "1023");
  CHECK(significant_text(123456.7, 4) == "123457");
  CHECK(significant_text(16, 4) == "16");
  CHECK(significant_text(-0.25, 4) == "-0.25");
  CHECK(significant_text(0.99995460007033, 4) == "1.0000");
  CHECK(significant_text(1.38389652673674e-87, 4) == "1.384e-87");
  CHECK(significant_text(7.44e-44, 4) == "7.44e-44");
  CHECK(significant_text(1e300, 4) == "1e+300");
  CHECK(significant_text(-0.0, 4) == "0");
  CHECK(significant_text(0.1, 17) == "0.1");
  CHECK(significant_text(std::nan(""), 4) == "NaN");
  CHECK(significant_text(-HUGE_VAL, 4) == "-inf");
}

TEST_CASE("a 32-bit element is as short as its type allows") {
  const AnyTensor single = Tensor<float>({1}, {0.1f});
  CHECK(significant_text(single, 0, 17) == "0.1");
  const AnyTensor large = Tensor<std::int64_t>({1}, {9007199254740993});
  CHECK(significant_text(large, 0, 4) == "9007199254740993");
}

TEST_CASE("decimal points of a column stand under each other") {
  CHECK(align_decimals({"1023", "0.9987", "-", "1e-09"}) ==
        std::vector<std::string>{"1023     ", "   0.9987", "        -", "   1e-09 "});
}

TEST_CASE("a table too wide for the terminal repeats its keys in every group") {
  const std::vector<TextColumn> columns = {{"d_k", "", {"4", "64"}, true, true},
                                           {"mean", "", {"0.1", "0.2"}, true, false},
                                           {"variance", "nats", {"1.5", "-"}, true, false}};
  CHECK(text_table(columns, 80, false) ==
        "d_k  mean  variance\n"
        "               nats\n"
        "  4   0.1       1.5\n"
        " 64   0.2         -\n");
  CHECK(text_table(columns, 16, false) ==
        "d_k  mean\n"
        "  4   0.1\n"
        " 64   0.2\n"
        "\n"
        "d_k  variance\n"
        "         nats\n"
        "  4       1.5\n"
        " 64         -\n");
}

}  // namespace
}  // namespace attnlab
