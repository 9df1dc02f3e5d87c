#include "options/help.h"
#include "options/wrapped.h"

#include <sstream>

#include "app/described.h"
#include "catch.h"

namespace attnlab {
namespace {

std::string help(int width) {
  EveryOption options;
  return help_text("fruit", "about fruit", "  attnlab fruit --count 2", options_of(options), {},
                   width);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the help says usage, every option with unit, range, choices and default, and examples") {
  const std::string text = help(1000);
  CHECK(text.find("Usage: attnlab fruit [options]\n\nabout fruit\n") == 0);
  CHECK(has(text, "  --count N                 a count (pairs; 1 to 17; default 3)\n"));
  CHECK(has(text, "  --flag                    a flag\n"));
  CHECK(
      has(text, "  --share X                 a share (at least 0 and less than 1; default 0.5)\n"));
  CHECK(has(text, "  --fruit apple|pear|blood-orange\n"));
  CHECK(has(text, "a fruit (default pear)"));
  CHECK(has(text, "--scale auto|none|NUMBER"));
  CHECK(has(text, "counts (at least 1; default 1,4)"));
  CHECK(has(text, "\nExamples:\n  attnlab fruit --count 2\n"));
}

TEST_CASE("a default that is a whole number has no fraction") {
  EveryOption options;
  options.share = 0;
  CHECK(has(help_text("x", "", "", options_of(options), {}, 1000), "default 0)\n"));
  CHECK_FALSE(has(help_text("x", "", "", options_of(options), {}, 1000), "default 0.0)"));
}

TEST_CASE("a flag that is on by default says how to turn it off") {
  EveryOption options;
  options.flag = true;
  CHECK(has(help_text("x", "", "", options_of(options), {}, 80), "(on unless --flag=false)"));
}

enum class Long { first, second };
}  // namespace
template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<Long> = {"a-rather-long-choice",
                                                                       "another-long-choice"};
namespace {

TEST_CASE("choices too long for the left column are listed in the text") {
  struct Options {
    Long way = Long::second;
    static constexpr auto fields() { return std::tuple(field("way", &Options::way, "a way")); }
  };
  Options options;
  const std::string text = help_text("x", "", "", options_of(options), {}, 1000);
  CHECK(has(text,
            "  --way NAME                a way (a-rather-long-choice, another-long-choice; "
            "default another-long-choice)\n"));
}

TEST_CASE("positionals stand in the usage and headings group the options") {
  struct Inner {
    Index n = 1;
    static constexpr auto fields() { return std::tuple(field("n", &Inner::n, "count")); }
  };
  struct Outer {
    TensorSource weights;
    Inner inner;
    static constexpr auto fields() {
      return std::tuple(field("weights", &Outer::weights, "a matrix", {.positional = true}),
                        group("Sizes", &Outer::inner));
    }
  };
  Outer options;
  const std::string text = help_text("x", "", "", options_of(options), {}, 80);
  CHECK(has(text, "Usage: attnlab x [WEIGHTS] [options]\n"));
  CHECK(has(text, "\nOptions:\n  --weights FILE"));
  CHECK(has(text, "\nSizes:\n  --n N "));
}

TEST_CASE("no line is wider than the terminal, however narrow") {
  for (const int width : {20, 30, 60, 80}) {
    std::istringstream lines(help(width));
    for (std::string line; std::getline(lines, line);) {
      INFO(width << ": " << line);
      const bool one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
      const bool flag = line.find("  --") == 0 || line.find("Usage") == 0 || has(line, "attnlab");
      CHECK((static_cast<int>(line.size()) <= width || one_word || flag));
    }
  }
}

TEST_CASE("text wraps at spaces and indents what follows") {
  CHECK(wrapped("aa bb cc", 5, 0) == "aa bb\ncc");
  CHECK(wrapped("aa bb cc", 7, 2) == "aa bb\n  cc");
  CHECK(wrapped("abcdefgh ij", 4, 0) == "abcdefgh\nij");
  CHECK(wrapped("aa", 0, 5) == "aa");
  CHECK(wrapped("", 80, 0) == "");
}

TEST_CASE("the help lists the matrices of the result, those shown by default marked") {
  struct Result {
    std::optional<AnyTensor> hidden, shown;
    Index count = 0;
    static constexpr auto fields() {
      return std::tuple(field("hidden", &Result::hidden, "not printed", {.formula = "a b"}),
                        field("shown", &Result::shown, "printed", {.shown = true}),
                        field("count", &Result::count, "a number"));
    }
  };
  EveryOption options;
  const std::string text = help_text("x", "", "", options_of(options), columns_of<Result>(), 80);
  CHECK(has(text, "  hidden                    a b: not printed\n"));
  CHECK(has(text, "  shown *                   printed\n"));
  CHECK_FALSE(has(text, "  count "));
}

}  // namespace
}  // namespace attnlab
