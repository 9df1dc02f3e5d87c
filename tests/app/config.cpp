#include "options/config.h"

#include <cmath>
#include <limits>

#include "app/described.h"
#include "catch.h"
#include "options/echo.h"
#include "options/option_set.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

EveryOption configured(const std::string& json, const ConfigPlace& place = {"c.json", ""}) {
  EveryOption options;
  OptionSet set(options_of(options));
  set.apply(Config{place, "", parse_json(json, "c.json")});
  set.check_ranges();
  return options;
}

std::string refusal(const std::string& json) {
  return message_of([&] { configured(json); });
}

TEST_CASE("a config sets every kind of option") {
  const EveryOption o = configured(R"({
    "flag": true, "maybe_flag": false, "count": 7, "maybe_count": 2, "seed": 18446744073709551615,
    "share": 0.25, "maybe_share": 3, "any_number": "-Infinity", "text": "a b", "counts": [1, 2],
    "shares": [0, 1], "names": ["x"], "scale": -1e-3, "file": "f", "tensor": [[1, 2], [3, 4.5]],
    "lengths": [3, 5], "fruit": "blood-orange", "fruits": ["pear", "apple"], "hidden": -4})");
  CHECK(o.flag);
  CHECK(o.maybe_flag == false);
  CHECK(o.count == 7);
  CHECK(o.maybe_count == 2);
  CHECK(o.seed == 18446744073709551615u);
  CHECK(o.share == .25);
  CHECK(o.maybe_share == 3.0);
  CHECK(o.any_number == -std::numeric_limits<double>::infinity());
  CHECK(o.text == "a b");
  CHECK(o.counts == std::vector<Index>{1, 2});
  CHECK(o.shares == std::vector<double>{0, 1});
  CHECK(o.names == std::vector<std::string>{"x"});
  CHECK(o.scale.is_number());
  CHECK(o.scale.number == -1e-3);
  CHECK(o.file.path == "f");
  REQUIRE(o.tensor.values.has_value());
  CHECK(o.tensor.values->shape() == Shape({2, 2}));
  CHECK(o.tensor.values->at(3) == 4.5);
  REQUIRE(o.lengths.values.has_value());
  CHECK(o.lengths.values->dtype() == DType::int64);
  CHECK(o.fruit == Fruit::blood_orange);
  CHECK(o.fruits == std::vector<Fruit>{Fruit::pear, Fruit::apple});
  CHECK(o.hidden == -4);
  CHECK(configured(R"({"scale": "none"})").scale.word == "none");
}

TEST_CASE("numbers in a config are never read through text") {
  CHECK(refusal(R"({"count": 1.5})") == "c.json: count: got 1.5, need an integer, 1 to 17");
  CHECK(refusal(R"({"count": "5"})") == "c.json: count: got \"5\", need an integer, 1 to 17");
  CHECK(refusal(R"({"seed": -1})") ==
        "c.json: seed: got -1, need an integer, 0 to 18446744073709551615");
  CHECK(refusal(R"({"seed": 18446744073709551616})").find("c.json: seed: got ") == 0);
  CHECK(refusal(R"({"hidden": 9223372036854775808})") ==
        "c.json: hidden: got 9223372036854775808, need an integer");
  CHECK(refusal(R"({"share": "0.5"})").find("c.json: share: got \"0.5\", need a number") == 0);
  CHECK(refusal(R"({"share": "NaN"})").find("c.json: share: got \"NaN\", need a number") == 0);
  CHECK(refusal(R"({"any_number": "nan"})") == "c.json: any_number: got \"nan\", need a number");
  CHECK(refusal(R"({"flag": 1})") == "c.json: flag: got 1, need true or false");
  CHECK(std::isnan(configured(R"({"any_number": "NaN"})").any_number));
}

TEST_CASE("a whole number may be written with a fraction or an exponent, as JSON Schema has it") {
  CHECK(configured(R"({"count": 2.0})").count == 2);
  CHECK(configured(R"({"seed": 1e3})").seed == 1000);
  CHECK(refusal(R"({"seed": 1e18})").find("c.json: seed: got ") == 0);
  CHECK(refusal(R"({"seed": -1.0})").find("c.json: seed: got ") == 0);
}

TEST_CASE("null unsets what may be absent and nothing else") {
  EveryOption options;
  options.maybe_count = 5;
  options.file.path = "f";
  options.tensor.path = "t";
  OptionSet set(options_of(options));
  set.apply(Config{{"c.json", ""},
                   "",
                   parse_json(R"({"maybe_count": null, "file": null, "tensor": null})", "c.json")});
  CHECK_FALSE(options.maybe_count.has_value());
  CHECK(options.file.empty());
  CHECK(options.tensor.empty());
  CHECK(refusal(R"({"count": null})") == "c.json: count: got null, need an integer, 1 to 17");
  CHECK(refusal(R"({"text": null})") == "c.json: text: got null, need text");
}

TEST_CASE("ranges are checked once all values are in, and errors name where the value came from") {
  CHECK(refusal(R"({"count": 18})") == "c.json: count: got 18, need 1 to 17");
  CHECK(refusal(R"({"maybe_count": 1})") == "c.json: maybe_count: got 1, need at least 2");
  CHECK(refusal(R"({"share": 1})") == "c.json: share: got 1, need at least 0 and less than 1");
  CHECK(refusal(R"({"maybe_share": 0})") == "c.json: maybe_share: got 0, need more than 0");
  CHECK(refusal(R"({"shares": [0.5, 2]})") == "c.json: shares: got 2, need 0 to 1");
  EveryOption options;
  OptionSet set(options_of(options));
  set.apply(Config{{"c.json", ""}, "", parse_json(R"({"count": 99})", "c.json")});
  set.apply(FlagValues{{"count", {"4"}}});
  set.check_ranges();
  CHECK(options.count == 4);
}

TEST_CASE("errors of the library are told of the flag or the key that brought the value") {
  EveryOption options;
  OptionSet set(options_of(options));
  set.apply(Config{{"c.json", ""}, "", parse_json(R"({"count": 2, "share": 0})", "c.json")});
  set.apply(FlagValues{{"share", {"0.5"}}});
  const auto located = [&](const char* source, const char* field) {
    return std::string(set.origins().located(InputError(source, field, "1", "need 2")).what());
  };
  CHECK(located("", "count") == "c.json: count: got 1, need 2");
  CHECK(located("", "share") == "command line: --share: got 1, need 2");
  CHECK(located("", "maybe_count") == "c.json: maybe_count: got 1, need 2");
  CHECK(located("Q.npy", "count") == "Q.npy: count: got 1, need 2");
  CHECK(located("", "no option") == "no option: got 1, need 2");
}

TEST_CASE("an unknown key is told with the nearest one") {
  CHECK(refusal(R"({"sclae": 0.5})") == "c.json: sclae: unknown option, did you mean scale?");
  CHECK(refusal(R"({"maybe-count": 5})") ==
        "c.json: maybe-count: unknown option, did you mean maybe_count?");
}

TEST_CASE("lists, choices and files of a config are of their kind") {
  CHECK(refusal(R"({"counts": 5})") ==
        "c.json: counts: got 5, need a list, each an integer, at least 1");
  CHECK(refusal(R"({"counts": [1, "2"]})") ==
        "c.json: counts: got \"2\", need an integer, at least 1");
  CHECK(configured(R"({"counts": []})").counts.empty());
  CHECK(refusal(R"({"fruit": "paer"})") ==
        "c.json: fruit: got \"paer\", need apple, pear or blood-orange, did you mean pear?");
  CHECK(refusal(R"({"fruit": 1})") == "c.json: fruit: got 1, need apple, pear or blood-orange");
  CHECK(refusal(R"({"file": ""})") == "c.json: file: got \"\", need a file");
  CHECK(refusal(R"({"tensor": {}})").find("c.json: tensor: got {}, need a file") == 0);
  CHECK(refusal(R"({"tensor": [[1, 2], [3]]})").find("c.json: tensor") == 0);
}

TEST_CASE("paths in a config are relative to it") {
  const ConfigPlace place{"some/c.json", "some"};
  const EveryOption o =
      configured(R"({"file": "f", "tensor": "t.npy", "lengths": "/l.npy"})", place);
  CHECK(o.file.path == "some/f");
  CHECK(o.tensor.path == "some/t.npy");
  CHECK(o.lengths.path == "/l.npy");
  CHECK(configured(R"({"tensor": "-"})", place).tensor.path == "-");
  NamedTensors tensors;
  OptionSet set(options_of(tensors));
  set.apply(
      Config{place, "", parse_json(R"({"save": {"a": "A.npy", "b": ["B.npy", "B.csv"]}})", "")});
  REQUIRE(tensors.save.size() == 3);
  CHECK(tensors.save[0].path == "some/A.npy");
  CHECK(tensors.save[2].name == "b");
  CHECK(tensors.save[2].path == "some/B.csv");
}

TEST_CASE("a config file names its command, and a result is a config") {
  const TemporaryFolder folder;
  const std::string plain =
      folder.write("plain.json", R"({"$schema": "x", "command": "attend", "n": 5})");
  const Config config = read_config(plain);
  CHECK(config.command == "attend");
  CHECK(config.options == parse_json(R"({"n": 5})", ""));
  CHECK(config.place.folder == folder.path().string());
  const Config result = read_config(folder.write(
      "result.json",
      R"({"command": "attend", "version": "0.1.0", "options": {"n": 6}, "notes": [], "result": {}})"));
  CHECK(result.command == "attend");
  CHECK(result.options == parse_json(R"({"n": 6})", ""));
  const std::string number = folder.write("number.json", "5");
  CHECK(message_of([&] { read_config(number); }) == number + ": got 5, need an object of options");
  const std::string several =
      folder.write("several.json", R"([{"command": "a"}, {"command": "b"}])");
  REQUIRE(read_configs(several).size() == 2);
  CHECK(read_configs(several)[1].command == "b");
  CHECK(read_configs(several)[1].place.source == several + "[1]");
  CHECK(read_configs(plain).size() == 1);
}

TEST_CASE("the echo of any options is a config that gives the same options") {
  EveryOption options;
  options.flag = true;
  options.maybe_flag = false;
  options.maybe_count = 4;
  options.seed = 18446744073709551615u;
  options.share = 0.1;
  options.any_number = -std::numeric_limits<double>::infinity();
  options.text = "[\"\\";
  options.counts = {};
  options.scale = -0.125;
  options.file.path = "relative/file";
  options.tensor.values =
      Tensor<double>({2, 2}, {1, std::numeric_limits<double>::quiet_NaN(), 3, 4});
  options.lengths.values = Tensor<std::int64_t>({2}, {3, 5});
  options.fruits = {Fruit::pear, Fruit::pear};
  options.hidden = 9;
  const Json echo = options_to_json(options_of(options));
  CHECK_FALSE(echo.contains("hidden"));
  CHECK(echo["maybe_share"].is_null());
  CHECK(echo["file"] == (std::filesystem::current_path() / "relative/file").string());
  CHECK(echo["any_number"] == "-Infinity");
  EveryOption again = configured(dump_json(echo));
  CHECK(options_to_json(options_of(again)) == echo);
  CHECK(again.seed == options.seed);
  CHECK(again.lengths.values->dtype() == DType::int64);
  EveryOption defaults;
  EveryOption defaults_again = configured(dump_json(options_to_json(options_of(defaults))));
  CHECK(options_to_json(options_of(defaults_again)) == options_to_json(options_of(defaults)));
  CHECK(defaults_again.tensor.empty());
}

TEST_CASE("a name saved to several files is echoed with all of them") {
  NamedTensors tensors;
  tensors.save = {{"a", "/A.npy"}, {"b", "/B.npy"}, {"a", "/A.csv"}};
  CHECK(options_to_json(options_of(tensors)) ==
        parse_json(R"({"save": {"a": ["/A.npy", "/A.csv"], "b": "/B.npy"}})", ""));
}

TEST_CASE("a path that is not UTF-8 does not break the echo") {
  EveryOption options;
  options.text = "caf\xe9";
  options.tensor.path = "/caf\xe9.npy";
  const Json echo = options_to_json(options_of(options));
  CHECK(echo["text"] == "caf\xef\xbf\xbd");
  CHECK(echo["tensor"] == "/caf\xef\xbf\xbd.npy");
}

}  // namespace
}  // namespace attnlab
