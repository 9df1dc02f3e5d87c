#include "options/flags.h"

#include <cmath>
#include <limits>

#include "app/described.h"
#include "catch.h"
#include "options/option_set.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Strings = std::vector<std::string>;

EveryOption parsed(const Strings& arguments) {
  EveryOption options;
  OptionSet set(options_of(options));
  set.apply(parse_flags(set.options(), arguments));
  set.check_ranges();
  return options;
}

std::string refusal(const Strings& arguments) {
  return message_of([&] { parsed(arguments); });
}

struct Positionals {
  TensorSource weights;
  std::vector<double> values;
  static constexpr auto fields() {
    using O = Positionals;
    return std::tuple(
        field("weights", &O::weights, "first", {.positional = true}),
        field("values", &O::values, "the rest", {.positional = true, .non_finite = true}));
  }
};

Positionals positionals(const Strings& arguments) {
  Positionals options;
  OptionSet set(options_of(options));
  set.apply(parse_flags(set.options(), arguments));
  return options;
}

TEST_CASE("a flag alone is true, and =false overrides") {
  CHECK(parsed({"--flag"}).flag);
  CHECK(parsed({"--flag=true"}).flag);
  CHECK_FALSE(parsed({"--flag=false"}).flag);
  CHECK_FALSE(parsed({}).maybe_flag.has_value());
  CHECK(parsed({"--maybe-flag"}).maybe_flag == true);
  CHECK(parsed({"--maybe-flag=false"}).maybe_flag == false);
}

TEST_CASE("a flag given another value is an error") {
  const std::string rule = "need no value: the flag alone, or =true or =false";
  CHECK(refusal({"--flag=5"}) == "command line: --flag: got 5, " + rule);
  CHECK(refusal({"--flag="}) == "command line: --flag: got nothing, " + rule);
  CHECK(refusal({"--flag", "5"}) == "command line: got 5, unexpected argument");
}

TEST_CASE("a value stands after its flag or after an equals sign") {
  CHECK(parsed({"--count", "7"}).count == 7);
  CHECK(parsed({"--count=7"}).count == 7);
  CHECK(parsed({"--maybe-count", "+7"}).maybe_count == 7);
  CHECK(parsed({"--text", "a=b"}).text == "a=b");
  CHECK(parsed({"--text=a=b"}).text == "a=b");
  CHECK(parsed({"--text="}).text == "");
  CHECK(parsed({"--text", ""}).text == "");
}

TEST_CASE("what parsers like to take apart stays whole") {
  CHECK(parsed({"--text", "[CLS] it [SEP]"}).text == "[CLS] it [SEP]");
  CHECK(parsed({"--text", "[[aa]]"}).text == "[[aa]]");
  CHECK(parsed({"--text=--count"}).text == "--count");
  CHECK(parsed({"--text", "=x"}).text == "=x");
  CHECK(parsed({"--text", "{}"}).text == "{}");
  CHECK(parsed({"--text", "%%"}).text == "%%");
  CHECK(parsed({"--text", "\"quoted\""}).text == "\"quoted\"");
}

TEST_CASE("negative numbers are values, not flags") {
  CHECK(parsed({"--scale", "-1"}).scale.number == -1);
  CHECK(parsed({"--scale=-1"}).scale.number == -1);
  CHECK(parsed({"--scale", "-1e-3"}).scale.number == -1e-3);
  CHECK(parsed({"--any-number", "-.5"}).any_number == -.5);
  CHECK(parsed({"--any-number", "-inf"}).any_number == -std::numeric_limits<double>::infinity());
  const std::vector<double> values = positionals({"W.npy", "-.5", "-inf", "-1e-3", "2"}).values;
  CHECK(values == std::vector<double>{-.5, -std::numeric_limits<double>::infinity(), -1e-3, 2});
}

TEST_CASE("integers are read whole and exactly") {
  CHECK(parsed({"--seed", "18446744073709551615"}).seed == 18446744073709551615u);
  CHECK(parsed({"--seed", "9007199254740993"}).seed == 9007199254740993u);
  const std::string rule = ", need an integer, 0 to 18446744073709551615";
  for (const std::string value : {"-1", "18446744073709551616", "1.5", "1e3", "0x10", "7 ", "x"}) {
    CHECK(refusal({"--seed", value}) == "command line: --seed: got " + value + rule);
  }
  CHECK(refusal({"--count", "1.5"}) == "command line: --count: got 1.5, need an integer, 1 to 17");
  CHECK(refusal({"--hidden", "9223372036854775808"}) ==
        "command line: --hidden: got 9223372036854775808, need an integer");
}

TEST_CASE("numbers are read whole, and finite unless the option says otherwise") {
  CHECK(parsed({"--share", "+.25"}).share == .25);
  CHECK(parsed({"--maybe-share", "1e-300", "--any-number", "-2.5e3"}).any_number == -2500);
  for (const std::string value : {"nan", "inf", "0x1p3", "1e400", "1,5", "1e", "."}) {
    CHECK(refusal({"--share", value}) ==
          "command line: --share: got " + value + ", need a number, at least 0 and less than 1");
  }
  CHECK(std::isnan(parsed({"--any-number", "NaN"}).any_number));
  CHECK(parsed({"--any-number", "Infinity"}).any_number == std::numeric_limits<double>::infinity());
  CHECK(parsed({"--any-number", "inf"}).any_number == std::numeric_limits<double>::infinity());
}

TEST_CASE("lists are separated by commas, with or without spaces") {
  CHECK(parsed({"--counts", "1,16, 64"}).counts == std::vector<Index>{1, 16, 64});
  CHECK(parsed({"--shares", ".5 ,1"}).shares == std::vector<double>{.5, 1});
  CHECK(parsed({"--names", "scores, weights"}).names == Strings{"scores", "weights"});
  CHECK(parsed({"--fruits", "pear,blood-orange"}).fruits ==
        std::vector<Fruit>{Fruit::pear, Fruit::blood_orange});
  CHECK(refusal({"--counts", "1,,2"}) ==
        "command line: --counts: got 1,,2, need an integer, at least 1 at every comma");
  CHECK(refusal({"--counts", "1,x"}) ==
        "command line: --counts: got x, need an integer, at least 1");
  CHECK(refusal({"--counts", "1,0"}) == "command line: --counts: got 0, need at least 1");
}

TEST_CASE("a word or a number is either") {
  CHECK(parsed({"--scale", "none"}).scale.word == "none");
  CHECK(parsed({"--scale", "0.125"}).scale.number == 0.125);
  CHECK(parsed({"--scale", "0.125"}).scale.is_number());
  CHECK(refusal({"--scale", "nome"}) ==
        "command line: --scale: got nome, need auto, none or a number, did you mean none?");
  CHECK(refusal({"--scale", "inf"}) ==
        "command line: --scale: got inf, need auto, none or a number");
}

TEST_CASE("a choice is one of its names") {
  CHECK(parsed({"--fruit", "blood-orange"}).fruit == Fruit::blood_orange);
  CHECK(refusal({"--fruit", "paer"}) ==
        "command line: --fruit: got paer, need apple, pear or blood-orange, did you mean pear?");
}

TEST_CASE("a tensor is a file, or where allowed a list of numbers") {
  CHECK(parsed({"--tensor", "Q.npy"}).tensor.path == "Q.npy");
  CHECK(parsed({"--tensor", "-"}).tensor.path == "-");
  CHECK(parsed({"--tensor", "3,5"}).tensor.path == "3,5");
  const TensorSource integers = parsed({"--lengths", "3,5"}).lengths;
  REQUIRE(integers.values.has_value());
  CHECK(integers.values->dtype() == DType::int64);
  CHECK(integers.values->shape() == Shape{2});
  CHECK(integers.values->at(1) == 5);
  const TensorSource numbers = parsed({"--lengths", "3,.5"}).lengths;
  REQUIRE(numbers.values.has_value());
  CHECK(numbers.values->dtype() == DType::float64);
  CHECK(numbers.values->at(1) == .5);
  CHECK(parsed({"--lengths", "lengths.npy"}).lengths.path == "lengths.npy");
  CHECK(refusal({"--tensor", ""}) ==
        "command line: --tensor: got nothing, need a file or an array of numbers");
}

TEST_CASE("a file named like a number is the file") {
  const TemporaryFolder folder;
  const std::string path = folder.write("35", "");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const TensorSource source = parsed({"--lengths", "35"}).lengths;
  std::filesystem::current_path(before);
  CHECK(source.path == "35");
  CHECK_FALSE(source.values.has_value());
}

TEST_CASE("only --save and its like repeat") {
  NamedTensors tensors;
  OptionSet set(options_of(tensors));
  set.apply(parse_flags(set.options(), Strings{"--save", "a=A=1.npy", "--save=b=B.csv"}));
  REQUIRE(tensors.save.size() == 2);
  CHECK(tensors.save[0].name == "a");
  CHECK(tensors.save[0].path == "A=1.npy");
  CHECK(tensors.save[1].path == "B.csv");
  for (const std::string text : {"a", "=A.npy", "a="}) {
    CHECK(message_of([&] {
            set.apply(parse_flags(set.options(), Strings{"--save", text}));
          }) == "command line: --save: got " + text + ", need NAME=FILE");
  }
  CHECK(refusal({"--count", "1", "--count", "2"}) == "command line: --count: got 2, given twice");
  CHECK(refusal({"--flag", "--flag"}) == "command line: --flag: given twice");
}

TEST_CASE("unknown options are told with the nearest one") {
  CHECK(refusal({"--sclae", "1"}) ==
        "command line: --sclae: unknown option, did you mean --scale?");
  CHECK(refusal({"--sclae=1"}) == "command line: --sclae: unknown option, did you mean --scale?");
  CHECK(refusal({"--zzzzzzzzz"}) == "command line: --zzzzzzzzz: unknown option");
  CHECK(refusal({"--coun", "1"}) == "command line: --coun: unknown option, did you mean --count?");
  CHECK(refusal({"-c", "1"}).find("command line: -c: unknown option") == 0);
  CHECK(refusal({"---count", "1"}).find("unknown option") != std::string::npos);
  CHECK(refusal({"--no-flag"}).find("command line: --no-flag: unknown option") == 0);
}

TEST_CASE("a missing value is told with what it would be") {
  CHECK(refusal({"--count"}) == "command line: --count: needs a value: N");
  CHECK(refusal({"--tensor", "--flag"}) == "command line: --tensor: needs a value: FILE");
}

TEST_CASE("positionals fill their options in order, a list takes the rest") {
  const Positionals given = positionals({"W.npy", "1", "2"});
  CHECK(given.weights.path == "W.npy");
  CHECK(given.values == std::vector<double>{1, 2});
  const Positionals by_flag = positionals({"--weights", "W.npy", "1"});
  CHECK(by_flag.weights.path == "W.npy");
  CHECK(by_flag.values == std::vector<double>{1});
  CHECK(positionals({"--", "--odd-name"}).weights.path == "--odd-name");
  CHECK(refusal({"stray"}) == "command line: got stray, unexpected argument");
  CHECK(message_of([] {
          positionals({"--values", "1", "W.npy", "2"});
        }) == "command line: got 2, unexpected argument");
}

TEST_CASE("a list of numbers without its flag is one tensor") {
  struct Softmax {
    TensorSource x;
    static constexpr auto fields() {
      return std::tuple(field("x", &Softmax::x, "scores", {.positional = true, .list_text = true}));
    }
  };
  Softmax options;
  OptionSet set(options_of(options));
  set.apply(parse_flags(set.options(), Strings{"1", "-2.5", "3"}));
  REQUIRE(options.x.values.has_value());
  CHECK(options.x.values->at(1) == -2.5);
  CHECK(message_of([&] {
          set.apply(parse_flags(set.options(), Strings{"1", "x.npy"}));
        }) == "command line: --x: got 1,x.npy, need numbers, or one file");
}

TEST_CASE("help is asked for before a double dash only") {
  CHECK(asks_for_help(Strings{"--count", "--help"}));
  CHECK_FALSE(asks_for_help(Strings{"--", "--help"}));
  CHECK_FALSE(asks_for_help(Strings{"help"}));
}

}  // namespace
}  // namespace attnlab
