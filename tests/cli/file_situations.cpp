// Files and command lines that software of this kind gets wrong, through the binary. F and C number
// the situations: files, command line. What a reader does with each file tests/io tests; here the
// user gets one clear line, exit 2 and nothing on stdout.

#include <thread>

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

std::string fixture(const std::string& name) {
  return std::string(ATTNLAB_TEST_DATA) + "/fixtures/" + name;
}

nlohmann::ordered_json weights_of(const std::string& file) {
  return result_of_run({"weights", fixture(file)})["result"]["weights"];
}

TEST_CASE("F47-F49, F54: the same matrix in every form of file") {
  const std::vector<double> expected = {1, 2, 3, 4, 5, 6};
  for (const char* file :
       {"c_f8.npy", "fortran_f8.npy", "v2.npy", "be_f8.npy", "le_f4.npy", "f2.npy", "i8.npy"}) {
    INFO(file);
    CHECK(numbers(weights_of(file)) == expected);
  }
  CHECK(numbers(weights_of("bom_crlf.csv")) == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("F49-F63: what cannot be read is refused in one line that says why") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"zero_d.npy", {"zero_d.npy", "[]"}},
      {"struct.npy", {"struct.npy"}},
      {"object.npy", {"object.npy", "object"}},
      {"trunc_data.npy", {"6", "5"}},
      {"huge_shape.npy", {"huge_shape.npy"}},
      {"two.npz", {"two.npz", "q, k"}},
      {"bomb_u64max.safetensors:x", {"bomb_u64max.safetensors"}},
      {"bomb_1TB.safetensors:x", {"bomb_1TB.safetensors"}},
      {"overlap.safetensors:a", {"overlap.safetensors"}},
      {"mismatch.safetensors:a", {"mismatch.safetensors"}},
      {"short.safetensors:a", {"short.safetensors"}},
      {"ragged.csv", {"ragged.csv", "line"}},
      {"trail_comma.csv", {"trail_comma.csv", "line 1"}},
      {"blank.csv", {"blank.csv", "line 2"}},
      {"empty.csv", {"empty.csv"}},
      {"deccomma.csv", {"deccomma.csv", "comma"}},
      {"nan.json", {"nan.json"}},
      {"null.json", {"null.json", "null"}},
      {"dup.json", {"dup.json"}},
      {"trunc.json", {"trunc.json", "line", "column"}},
      {"comment.json", {"comment.json", "line", "column"}},
      {"ragged.json", {"row 1", "1 value", "expected 2"}},
      {"emptyarr.json", {"emptyarr.json"}},
      {"no_such_file.npy", {"no_such_file.npy", "No such file"}},
  };
  for (const auto& [file, parts] : cases) {
    INFO(file);
    check_refused({"weights", fixture(file)}, parts);
  }
}

TEST_CASE("F50: bytes behind an array are a warning") {
  const Outcome outcome = attnlab({"weights", fixture("trail.npy")});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("trail.npy") != std::string::npos);
}

TEST_CASE("F56: the locale changes nothing") {
  const auto bytes = [](const std::string& locale) {
    return attnlab({"attend", "--n", "3", "--format", "json"},
                   {.environment = {{"LC_ALL", locale}}})
        .out;
  };
  CHECK(bytes("de_DE.UTF-8") == bytes("C"));
}

TEST_CASE("F57: what is written is read back, non-finite numbers included") {
  const TemporaryFolder folder;
  const std::string text = R"([[1, "NaN"], ["Infinity", "-Infinity"], [0.1, 1e-310]])";
  const std::string given = folder.write("given.json", text);
  for (const std::string name : {"out.json", "out.csv", "out.npy"}) {
    INFO(name);
    REQUIRE(attnlab({"weights", given, "--save", "weights=" + (folder / name)}).exit_code == 0);
    CHECK(attnlab({"compare", given, folder / name, "--atol", "0", "--rtol", "0"}).exit_code == 0);
  }
  check_refused({"weights", folder.write("large.json", "[[1, 1e400]]")}, {"large.json", "[0][1]"});
  check_refused({"weights", folder.write("text.json", R"([[1, "2"]])")}, {"text.json", "[0][1]"});
  check_refused({"weights", folder.write("utf16.json", std::string("\xff\xfe[\0", 4))}, {"UTF-8"});
  CHECK(attnlab({"weights", folder.write("bom.json", "\xef\xbb\xbf[[1, 2]]")}).exit_code == 0);
}

TEST_CASE("F60: deep nesting is refused without a crash") {
  const TemporaryFolder folder;
  check_refused({"weights", folder.write("deep.json", std::string(100000, '['))}, {"deep"});
}

TEST_CASE("F62: seeds of 64 bits are exact, others are refused") {
  const TemporaryFolder folder;
  for (const std::string seed :
       {"9007199254740993", "18446744073709551615", "1000000000000000", "0"}) {
    const auto by_flag = result_of_run({"attend", "--n", "2", "--seed", seed});
    CHECK(by_flag["options"]["seed"].dump() == seed);
    const std::string config = folder.write("seed.json", R"({"n": 2, "seed": )" + seed + "}");
    const auto by_config = result_of_run({"attend", "--config", config});
    CHECK(by_config["options"]["seed"].dump() == seed);
    CHECK(by_config["result"] == by_flag["result"]);
  }
  for (const std::string seed : {"-1", "1.5", "18446744073709551616", "1e3", ""}) {
    check_refused({"attend", "--seed", seed}, {"seed"});
  }
  for (const std::string seed : {"-1", "1.5", "18446744073709551616", "\"1\"", "true", "null"}) {
    check_refused({"attend", "--config", folder.write("c.json", R"({"seed": )" + seed + "}")},
                  {"c.json", "seed"});
  }
}

TEST_CASE("C66, T43: a heat map is for terminals, and readable without colour") {
  const TemporaryFolder folder;
  const std::string file = folder.write("w.csv", "0.9,0.1\n0.5,0.5\n");
  const Outcome plain =
      attnlab({"weights", file},
              {.environment = {{"NO_COLOR", "1"}, {"TERM", "xterm"}}, .terminal_columns = 60});
  CHECK(plain.out.find('\x1b') == std::string::npos);
  CHECK(plain.out.find("\u2588\u2588") != std::string::npos);
  const Outcome coloured =
      attnlab({"weights", file}, {.environment = {{"TERM", "xterm"}}, .terminal_columns = 60});
  CHECK(coloured.out.find('\x1b') != std::string::npos);
  const Outcome piped = attnlab({"weights", file});
  CHECK(piped.out.find('\x1b') == std::string::npos);
  CHECK(attnlab({"weights", file, "--color", "always"}).out.find('\x1b') != std::string::npos);
  // All of one value: minimum and maximum say so.
  const std::string thirds =
      folder.write("thirds.json", "[[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]");
  const Outcome flat =
      attnlab({"weights", thirds}, {.environment = {{"NO_COLOR", "1"}}, .terminal_columns = 60});
  CHECK(flat.out.find("0.25") != std::string::npos);
  const std::string hole = folder.write("hole.json", R"([[0.9, "NaN"], [0.5, 0.1]])");
  const Outcome holed =
      attnlab({"weights", hole}, {.environment = {{"NO_COLOR", "1"}}, .terminal_columns = 60});
  CHECK(holed.out.find("??") != std::string::npos);
  CHECK(holed.out.find("\u2588\u2588") != std::string::npos);
}

TEST_CASE("C69: a misspelt key is refused with the nearest name") {
  check_refused({"attend", "--config", "-"}, {"sclae", "scale"},
                {.stdin_text = R"({"sclae": 0.5})"});
}

TEST_CASE("C71: an unwritable target is refused before the work, and nothing is half written") {
  const TemporaryFolder folder;
  check_refused({"attend", "--output", folder / "no/such/folder.json"}, {"output"});
  check_refused({"attend", "--save", "output=" + (folder / "no/such/folder.npy")}, {"save"});
  check_refused({"attend", "--save", "output=" + (folder / "matrix.xyz")}, {"save", ".npy"});
  check_refused({"attend", "--save", "weigths=" + (folder / "w.npy")}, {"weigths", "weights"});
  check_refused({"multihead", "--save-params", folder / "no/such.safetensors"}, {"save-params"});
  CHECK(folder.names().empty());
}

TEST_CASE("C74: weights that no memory holds are refused at once, with the estimate") {
  check_refused(
      {"attend", "--n", "200000", "--d-k", "1", "--dtype", "float64", "--show", "weights"},
      {"weights", "320 GB"});
  check_refused({"attend", "--n", "4000000000000"}, {"memory"});
  check_refused({"attend", "--n", "4000000000000", "--d-k", "4000000000000"}, {"--n", "memory"});
}

TEST_CASE("a run that is refused leaves no parameters behind") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  check_refused({"multihead", "--save-params", "P.safetensors", "--tokens", "a b"}, {"tokens"},
                here);
  const std::string configs =
      folder.write("two.json", R"([{"command": "multihead", "save_params": "P.safetensors"},
                      {"command": "attend", "q": [[1]], "k": [[1, 2]], "v": [[1]]}])");
  check_refused({"run", configs}, {"k"}, here);
  CHECK_FALSE(folder.has("P.safetensors"));
  CHECK(attnlab({"multihead", "--save-params", "P.safetensors"}, here).exit_code == 0);
  CHECK(folder.has("P.safetensors"));
}

TEST_CASE("a matrix that no table has room for is refused before anything is written") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  for (const std::string name : {"B.csv", "B.tsv"}) {
    check_refused({"attend", "--heads", "2", "--n", "2", "--save", "output=A.npy", "--save",
                   "weights=" + name},
                  {"--save", name, "[2, 2, 2]"}, here);
  }
  check_refused({"attend", "--n", "0", "--save", "output=A.npy", "--save", "q=B.csv"}, {"B.csv"},
                here);
  CHECK(folder.names().empty());
}

TEST_CASE("text after a NUL byte is not dropped") {
  check_refused({"attend", "--config", "-"}, {"standard input", "NUL", "line 1, column 8"},
                {.stdin_text = std::string("{\"n\":3}\0{garbage", 16)});
  const TemporaryFolder folder;
  const std::string csv = folder.write("w.csv", std::string("1,2\n3,\0004\n", 9));
  check_refused({"weights", csv}, {"w.csv", "NUL", "line 2, column 3"});
  const std::string json = folder.write("w.json", std::string("[[1]]\0", 6));
  check_refused({"weights", json}, {"w.json", "NUL", "line 1, column 6"});
}

TEST_CASE("saved 16-bit inputs and layers give the saved output again") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  REQUIRE(attnlab({"multihead", "--dtype", "float16", "--bias", "--save-params", "L.safetensors",
                   "--save", "x=x.npy", "--save", "output=y.npy"},
                  here)
              .exit_code == 0);
  REQUIRE(attnlab({"multihead", "--x", "x.npy", "--params", "L.safetensors", "--save",
                   "output=again.npy"},
                  here)
              .exit_code == 0);
  CHECK(folder.read("again.npy") == folder.read("y.npy"));
}

}  // namespace
}  // namespace attnlab
