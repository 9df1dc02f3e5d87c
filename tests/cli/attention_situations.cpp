// Small inputs that software of this kind gets wrong, through the binary as a user runs it. The
// letters number the situations by subject: A attention, S softmax.

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

// A config of attend as JSON text.
nlohmann::ordered_json attend_with(const std::string& config) {
  return result_of_run({"attend", "--config", "-"}, {.stdin_text = config});
}

TEST_CASE("A1: a row with no key is zero, counted and said") {
  const auto json = attend_with(
      R"({"q": [[1, 0], [0, 1]], "k": [[1, 0], [0, 1]], "v": [[1, 2], [3, 4]],
          "mask": [[true, true], [false, false]], "mask_kind": "attend",
          "show": ["weights", "output"]})");
  check_close(numbers(json["result"]["weights"]), {.669762, .330238, 0, 0});
  check_close(numbers(json["result"]["output"]), {1.660477, 2.660477, 0, 0});
  CHECK(json["result"]["empty_rows"] == 1);
  CHECK(json["notes"].dump().find("1 row has no key") != std::string::npos);
}

TEST_CASE("scores that overflow to -infinity are counted and said") {
  const std::string inputs = R"({"k": [[-1e200]], "v": [[7]], "show": ["weights"], "q": )";
  const auto json = attend_with(inputs + "[[1e200], [1]]}");
  CHECK(numbers(json["result"]["weights"]) == std::vector<double>{0, 1});
  CHECK(json["result"]["empty_rows"] == 0);
  CHECK(json["notes"].dump().find("1 row sees keys, but scores that are all -infinity") !=
        std::string::npos);
  const auto fine = attend_with(inputs + "[[1]]}");
  CHECK(fine["notes"].empty());
  const auto masked = attend_with(inputs + R"([[1]], "mask": [["-Infinity"]]})");
  CHECK(masked["result"]["empty_rows"] == 1);
  CHECK(masked["notes"].dump().find("-infinity") == std::string::npos);
}

TEST_CASE("weights and layers tell of overflowing scores too") {
  const auto weights = result_of_run({"weights", "--config", "-"}, {.stdin_text = R"(
      {"q": [[1e200]], "k": [[-1e200]]})"});
  CHECK(weights["notes"].dump().find("1 row sees keys") != std::string::npos);
  const TemporaryFolder folder;
  REQUIRE(attnlab({"multihead", "--n", "2", "--d-model", "1", "--heads", "1", "--dtype", "float64",
                   "--save-params", folder / "L.safetensors"})
              .exit_code == 0);
  // One of 1e200 and -1e200 has keys of the other sign only.
  const auto layer =
      result_of_run({"multihead", "--params", folder / "L.safetensors", "--config", "-"},
                    {.stdin_text = R"({"x": [[1e200], [1e200]], "memory": [[-1e200]]})"});
  const auto other =
      result_of_run({"multihead", "--params", folder / "L.safetensors", "--config", "-"},
                    {.stdin_text = R"({"x": [[1e200], [1e200]], "memory": [[1e200]]})"});
  CHECK((layer["notes"].dump() + other["notes"].dump()).find("2 rows see keys") !=
        std::string::npos);
}

TEST_CASE("A3: an additive mask of -1e9 is arithmetic") {
  const std::string inputs =
      R"({"q": [[1, 0]], "k": [[1, 0], [0, 1]], "v": [[1], [2]], "mask": [[-1e9, -1e9]],
          "show": ["weights"], "dtype": )";
  check_close(numbers(attend_with(inputs + "\"float64\"}")["result"]["weights"]),
              {.669762, .330238});
  check_close(numbers(attend_with(inputs + "\"float32\"}")["result"]["weights"]), {.5, .5});
}

TEST_CASE("A4: masked is masked, however low the other scores are") {
  const auto json = attend_with(
      R"({"q": [[100], [100]], "k": [[-150], [1]], "v": [[1], [2]], "causal": true, "scale": 1,
          "show": ["weights"]})");
  check_close(numbers(json["result"]["weights"]), {1, 0, 0, 1}, 0);
}

TEST_CASE("A5: the lowest float32 as padding keeps rows finite") {
  const auto json = attend_with(
      R"({"q": [[1], [1]], "k": [[1], [2]], "v": [[3], [5]], "causal": true, "dtype": "float32",
          "mask": [[0, -3.4028235e38]], "show": ["weights", "output"]})");
  check_close(numbers(json["result"]["weights"]), {1, 0, 1, 0}, 0);
  check_close(numbers(json["result"]["output"]), {3, 3}, 0);
}

TEST_CASE("A7: what lies under the mask does not matter, bit for bit") {
  const auto weights_and_output = [](const std::string& hidden) {
    const auto json = attend_with(R"({"q": [[1, 0]], "k": [[1, 0], [)" + hidden +
                                  R"(, 0]], "v": [[1], [)" + hidden +
                                  R"(]], "mask": [true, false], "mask_kind": "attend",
                                      "show": ["weights", "output"]})");
    return json["result"].dump();
  };
  const std::string clean = weights_and_output("0");
  CHECK(clean == R"({"weights":[[1,0]],"output":[[1]],"empty_rows":0})");
  CHECK(weights_and_output("\"NaN\"") == clean);
  CHECK(weights_and_output("\"Infinity\"") == clean);
  CHECK(weights_and_output("1e10") == clean);
}

TEST_CASE("A8: causal with fewer queries than keys, by either diagonal, and said") {
  const std::string inputs =
      R"({"q": [[0], [0]], "k": [[0], [0], [0], [0], [0]], "v": [[1], [2], [3], [4], [5]],
          "causal": true, "align": )";
  const auto top_left = attend_with(inputs + "\"top-left\"}");
  check_close(numbers(top_left["result"]["output"]), {1, 1.5});
  CHECK(top_left["notes"].dump().find("top-left") != std::string::npos);
  const auto bottom_right = attend_with(inputs + "\"bottom-right\"}");
  check_close(numbers(bottom_right["result"]["output"]), {2.5, 3});
  CHECK(bottom_right["notes"].dump().find("bottom-right") != std::string::npos);
}

TEST_CASE("A10: a boolean mask needs its polarity named") {
  const TemporaryFolder folder;
  const std::string inputs =
      R"("q": [[0], [0], [0]], "k": [[0], [0], [0]], "v": [[1], [2], [3]],
         "mask": [[true, false, false], [true, true, false], [true, true, true]])";
  check_close(
      numbers(attend_with("{" + inputs + R"(, "mask_kind": "attend"})")["result"]["output"]),
      {1, 1.5, 2});
  check_close(
      numbers(attend_with("{" + inputs + R"(, "mask_kind": "ignore"})")["result"]["output"]),
      {2.5, 3, 0});
  check_refused({"attend", "--config", folder.write("c.json", "{" + inputs + "}")},
                {"mask", "polarity"});
}

TEST_CASE("A11: a numeric mask of 0 and 1 is added, with a warning") {
  const auto json = attend_with(
      R"({"q": [[0], [0], [0]], "k": [[0], [0], [0]], "v": [[1], [2], [3]],
          "mask": [[1, 0, 0], [1, 1, 0], [1, 1, 1]], "show": ["weights", "output"]})");
  check_close(numbers(json["result"]["weights"][0]), {.576117, .211942, .211942});
  check_close(numbers(json["result"]["output"]), {1.635825, 1.733044, 2});
  CHECK(json["notes"].dump().find("only 0 and 1") != std::string::npos);
}

TEST_CASE("A12: causal and padding compose") {
  const auto json = attend_with(
      R"({"q": [[0], [0], [0]], "k": [[0], [0], [0]], "v": [[1], [2], [3]], "causal": true,
          "mask": [true, false, false], "mask_kind": "ignore"})");
  check_close(numbers(json["result"]["output"]), {0, 2, 2.5});
}

TEST_CASE("A13: asking for the weights does not change the saved output") {
  const TemporaryFolder folder;
  const std::vector<std::string> run = {"attend",  "--n",    "9",          "--m",   "33",
                                        "--heads", "4",      "--kv-heads", "2",     "--causal",
                                        "--quiet", "--show", "none",       "--save"};
  std::vector<std::string> plain = run, asked = run;
  plain.push_back("output=" + (folder / "plain.npy"));
  asked.insert(asked.end(),
               {"output=" + (folder / "asked.npy"), "--save", "weights=" + (folder / "weights.npy"),
                "--save", "raw_scores=" + (folder / "raw.npy")});
  REQUIRE(attnlab(plain).exit_code == 0);
  REQUIRE(attnlab(asked).exit_code == 0);
  CHECK_FALSE(folder.read("plain.npy").empty());
  CHECK(folder.read("plain.npy") == folder.read("asked.npy"));
}

TEST_CASE("A15: grouped heads go in order, and must divide") {
  const auto json = attend_with(
      R"({"q": [[[0]], [[0]], [[0]], [[0]]], "k": [[[0]], [[0]]], "v": [[[10]], [[20]]]})");
  check_close(numbers(json["result"]["output"]), {10, 10, 20, 20}, 0);
  check_refused({"attend", "--config", "-"}, {"3", "2", "heads"},
                {.stdin_text = R"({"q": [[[0]], [[0]], [[0]]], "k": [[[0]], [[0]]],
                                   "v": [[[10]], [[20]]]})"});
}

TEST_CASE("A16: dropout is applied to the output, not to the reported weights") {
  const std::string inputs =
      R"({"q": [[0]], "k": [[0], [0]], "v": [[1, 0], [0, 1]], "dropout": 0.5,
          "show": ["weights", "output"], "seed": )";
  bool dropped = false, kept = false;
  for (int seed = 0; seed < 16; ++seed) {
    const auto json = attend_with(inputs + std::to_string(seed) + "}");
    check_close(numbers(json["result"]["weights"]), {.5, .5}, 0);
    for (const double applied : numbers(json["result"]["output"])) {
      CHECK((applied == 0 || applied == 1));
      (applied == 0 ? dropped : kept) = true;
    }
  }
  CHECK(dropped);
  CHECK(kept);
  check_refused({"attend", "--dropout", "1"}, {"dropout", "got 1"});
  check_refused({"attend", "--dropout", "-0.1"}, {"dropout", "-0.1"});
}

TEST_CASE("A17: widths may differ") {
  const auto json = result_of_run({"multihead", "--config", "-", "--show", "weights,output"},
                                  {.stdin_text = R"({"heads": 2,
      "query": [[1, 2, 3, 4], [5, 6, 7, 8]],
      "key": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
      "value": [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [1, 1, 1, 1, 1]]})"});
  CHECK(json["result"]["output"].size() == 2);
  CHECK(json["result"]["output"][0].size() == 4);
  CHECK(json["result"]["weights"].size() == 2);
  CHECK(json["result"]["weights"][0].size() == 2);
  CHECK(json["result"]["weights"][0][0].size() == 3);
}

TEST_CASE("A18: sizes that do not agree are refused with the tensors and both numbers") {
  check_refused({"multihead", "--d-model", "10", "--heads", "3"}, {"heads", "3", "10"});
  const TemporaryFolder folder;
  const auto csv = [&](const std::string& name, int rows, int columns) {
    std::string text;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) text += j == 0 ? "1" : ",1";
      text += "\n";
    }
    return folder.write(name, text);
  };
  check_refused({"attend", "--q", csv("q.csv", 2, 8), "--k", csv("k.csv", 5, 8), "--v",
                 csv("v.csv", 6, 8), "--save", "output=" + (folder / "never.npy")},
                {"v", "5", "6"});
  CHECK_FALSE(folder.has("never.npy"));
  check_refused(
      {"attend", "--q", csv("q.csv", 2, 8), "--k", csv("k.csv", 5, 7), "--v", csv("v.csv", 5, 8)},
      {"k", "7", "8"});
}

TEST_CASE("A20: scale, cap, mask, softmax, in this order") {
  const std::string inputs =
      R"({"q": [[1]], "k": [[1], [2]], "v": [[1], [2]], "softcap": 2, "show": ["weights"])";
  check_close(numbers(attend_with(inputs + "}")["result"]["weights"]), {.354583, .645417});
  check_close(numbers(attend_with(inputs + R"(, "key_lengths": [1]})")["result"]["weights"]),
              {1, 0}, 0);
}

TEST_CASE("A21: a window says how many keys it shows beside self") {
  const std::string inputs =
      R"({"q": [[0], [0], [0], [0], [0]], "k": [[0], [0], [0], [0], [0]],
          "v": [[1], [2], [3], [4], [5]], "causal": true, "window_left": )";
  check_close(numbers(attend_with(inputs + "2}")["result"]["output"]), {1, 1.5, 2, 3, 4});
  check_close(numbers(attend_with(inputs + "3}")["result"]["output"]), {1, 1.5, 2, 2.5, 3.5});
  const Outcome help = attnlab({"attend", "--help"});
  CHECK(help.out.find("self not counted") != std::string::npos);
}

TEST_CASE("A22: the scale is 1/sqrt of a head's width") {
  const std::string inputs =
      R"({"q": [[1, 1, 1, 1]], "k": [[1, 1, 1, 1], [0, 0, 0, 0]], "v": [[1], [0]],
          "show": ["weights"])";
  const auto first = [&](const std::string& scale) {
    return numbers(attend_with(inputs + scale + "}")["result"]["weights"])[0];
  };
  CHECK(first("") == Approx(.880797).margin(1e-6));
  CHECK(first(R"(, "scale": "none")") == Approx(.982014).margin(1e-6));
  CHECK(first(R"(, "scale": 1)") == first(R"(, "scale": "none")"));
  CHECK(first(R"(, "scale": 0)") == .5);
  CHECK(first(R"(, "scale": -0.5)") == Approx(1 - .880797).margin(1e-6));
  check_refused({"attend", "--scale", "nan"}, {"scale", "nan"});
}

TEST_CASE("A24: axes of length 0 and 1") {
  const TemporaryFolder folder;
  const auto npy = [&](const std::string& name, int rows, int columns) {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" +
                         std::to_string(rows) + ", " + std::to_string(columns) + "), }";
    header.resize(118 - 1, ' ');
    header += '\n';
    const std::string start("\x93NUMPY\x01\x00\x76\x00", 10);
    return folder.write(
        name, start + header + std::string(static_cast<std::size_t>(rows * columns * 8), '\0'));
  };
  const auto shapes = [&](int n, int m, int d) {
    return result_of_run({"attend", "--q", npy("q.npy", n, d), "--k", npy("k.npy", m, d), "--v",
                          npy("v.npy", m, 2)})["result"];
  };
  CHECK(shapes(3, 0, 4)["output"].dump() == "[[0,0],[0,0],[0,0]]");
  CHECK(shapes(3, 0, 4)["empty_rows"] == 3);
  CHECK(shapes(0, 3, 4)["output"].dump() == "[]");
  CHECK(shapes(1, 1, 4)["output"].dump() == "[[0,0]]");
  check_refused(
      {"attend", "--q", npy("q.npy", 2, 0), "--k", npy("k.npy", 2, 0), "--v", npy("v.npy", 2, 2)},
      {"d_k", "0"});
}

TEST_CASE("A25: key lengths on the command line and in a file") {
  const TemporaryFolder folder;
  const std::string zeros = folder.write("zeros.csv", "0\n0\n0\n0\n");
  const std::vector<std::string> run = {"attend", "--q", zeros,    "--k",     zeros,
                                        "--v",    zeros, "--show", "weights", "--key-lengths"};
  for (const std::string& lengths : {std::string("2"), folder.write("lengths.csv", "2\n")}) {
    std::vector<std::string> arguments = run;
    arguments.push_back(lengths);
    const auto weights = result_of_run(arguments)["result"]["weights"];
    CHECK(weights[3].dump() == "[0.5,0.5,0,0]");
  }
}

TEST_CASE("S27: softmax holds far from 0") {
  const auto softmax = [](std::vector<std::string> values, const std::string& dtype) {
    values.insert(values.begin(), "softmax");
    values.insert(values.end(), {"--dtype", dtype});
    return numbers(result_of_run(values)["result"]["softmax"]);
  };
  check_close(softmax({"-249.87", "-424.13", "-460.29", "378.10", "-292.61"}, "float32"),
              {0, 0, 0, 1, 0}, 0);
  check_close(softmax({"1000", "1000", "1000"}, "float64"), {1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-15);
}

TEST_CASE("S28: a row of -inf alone is zeros, whatever its length") {
  for (const std::size_t length : {3u, 127u, 128u}) {
    std::vector<std::string> arguments(length, "-inf");
    arguments.insert(arguments.begin(), "softmax");
    for (const double p : numbers(result_of_run(arguments)["result"]["softmax"])) CHECK(p == 0);
  }
}

TEST_CASE("S30: rows do not touch each other") {
  const auto json = result_of_run(
      {"softmax", "--config", "-"},
      {.stdin_text = R"({"x": [["NaN", "Infinity", "-Infinity"], [1, 2, "-Infinity"]]})"});
  CHECK(json["result"]["softmax"][0].dump() == R"(["NaN","NaN","NaN"])");
  check_close(numbers(json["result"]["softmax"][1]), {.268941, .731059, 0});
}

TEST_CASE("S32: a temperature of 0 or below is refused by name") {
  for (const std::string value : {"0", "-1", "nan"}) {
    check_refused({"softmax", "1", "2", "--temperature", value}, {"temperature", value});
  }
}

TEST_CASE("S33: temperature divides before the shift") {
  const auto json =
      result_of_run({"softmax", "1e10", "0", "--temperature", ".3", "--dtype", "float32"});
  check_close(numbers(json["result"]["softmax"]), {1, 0}, 0);
}

TEST_CASE("the three rows of the example, in both precisions") {
  const auto row = [](const std::string& a, const std::string& b, const std::string& c,
                      const std::string& dtype, const std::string& method) {
    return result_of_run({"softmax", a, b, c, "--dtype", dtype, "--method", method})["result"];
  };
  auto json = row("1", "2", "3", "float64", "stable");
  check_close(numbers(json["softmax"]),
              {.09003057317038046, .24472847105479765, .66524095577482189}, 1e-16);
  CHECK(json["frobenius"].get<double>() == Approx(.389389774658).epsilon(1e-11));
  json = row("10", "20", "30", "float64", "stable");
  check_close(numbers(json["softmax"]), {2.0610600462e-9, 4.5397868609e-5, .99995460007033}, 1e-14);
  CHECK(json["frobenius"].get<double>() == Approx(9.079264572e-5).epsilon(1e-9));
  json = row("100", "200", "300", "float64", "stable");
  CHECK(numbers(json["softmax"])[0] == Approx(1.38389652673674e-87).epsilon(1e-13));
  CHECK(numbers(json["softmax"])[1] == Approx(3.72007597602084e-44).epsilon(1e-13));
  CHECK(json["frobenius"].get<double>() == Approx(7.440152e-44).epsilon(1e-6));
  json = row("100", "200", "300", "float32", "stable");
  CHECK(numbers(json["softmax"])[0] == 0);
  CHECK(numbers(json["softmax"])[1] == Approx(3.783506e-44).epsilon(1e-6));
  CHECK(numbers(json["softmax"])[2] == 1);
  json = row("100", "200", "300", "float32", "naive");
  for (const double p : numbers(json["softmax"])) CHECK(std::isnan(p));
}

}  // namespace
}  // namespace attnlab
