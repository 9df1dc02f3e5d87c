#include <cmath>
#include <filesystem>
#include <limits>

#include "attnlab/experiments/compare.h"
#include "attnlab/io/tensor_file.h"
#include "catch.h"
#include "experiments/attention_cases.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

CompareOptions both(const std::string& a, const std::string& b) {
  CompareOptions options;
  options.a.path = a;
  options.b.path = b;
  return options;
}

bool says(const CompareResult& result, const std::string& text) {
  INFO(*result.verdict);
  return result.verdict->find(text) != std::string::npos;
}

std::vector<std::string> names_of(const CompareResult& result) {
  std::vector<std::string> names;
  for (const CompareRow& row : result.rows) names.push_back(row.name);
  return names;
}

const CompareRow& row_of(const CompareResult& result, const std::string& name) {
  for (const CompareRow& row : result.rows) {
    if (row.name == name) return row;
  }
  FAIL("no row " << name);
  return result.rows.at(0);
}

// The folder of a kernel's files, those of the case to start with.
std::string kernel_of(const TemporaryFolder& folder, const std::vector<std::string>& names) {
  const std::string path = folder / "kernel";
  fs::remove_all(path);
  fs::create_directory(path);
  for (const std::string& name : names) {
    fs::copy(folder / ("case/" + name + ".npy"), path + "/" + name + ".npy");
  }
  return path;
}

// One element of a kernel's file, another number.
void change(const std::string& file, Index i, double value) {
  std::vector<std::string> notes;
  Tensor<double> tensor = read_tensor({.path = file, .values = {}}, "test", notes).cast<double>();
  tensor[i] = value;
  write_tensor(file, AnyTensor(tensor).cast(DType::float32), "test");
}

const std::vector<std::string> kSteps = {"raw_scores", "scores", "masked_scores", "weights",
                                         "output"};

TEST_CASE("a case agrees with itself, as far from the reference as the plain path") {
  const TemporaryFolder folder;
  AttendOptions call = causal_call();
  call.scores.kernel = Kernel::full;
  save_case(call, folder / "case");
  const CompareResult result = compare(both(folder / "case", folder / "case"), {});
  CHECK(result.equal);
  CHECK(names_of(result) == kSteps);
  CHECK_FALSE(result.departs.has_value());
  for (const CompareRow& row : result.rows) {
    CHECK(row.plain_dtype == "float32");
    CHECK(row.error_ratio.value() == 1);
    CHECK(row.max_abs_error == row.plain_error);
    CHECK(row.relative_norm == row.plain_relative_norm);
    CHECK(row.dtype_a == "float64");
    CHECK(row.dtype_b == "float32");
    CHECK(row.atol >= 1e-6);
  }
  CHECK(row_of(result, "output").careless_error.value() > .1);
  CHECK_FALSE(row_of(result, "output").careless_passes.value());
  CHECK_FALSE(row_of(result, "scores").careless_error.has_value());
  CHECK(says(result, "raw_scores, scores, masked_scores, weights and output agree"));
}

TEST_CASE("the first matrix that departs is told with its place and the step it leaves") {
  const TemporaryFolder folder;
  save_case(causal_call(), folder / "case");
  const std::string kernel = kernel_of(folder, kSteps);
  change(kernel + "/weights.npy", (1 * 5 + 3) * 7 + 2, .875);
  const CompareResult result = compare(both(folder / "case", kernel), {});
  CHECK_FALSE(result.equal);
  CHECK(result.departs == "weights");
  CHECK(result.batch == 0);
  CHECK(result.head == 1);
  CHECK(result.row == 3);
  CHECK(result.column == 2);
  CHECK(row_of(result, "weights").first_apart.value() == "[1, 3, 2]");
  CHECK(row_of(result, "weights").b == .875);
  CHECK(row_of(result, "weights").error_ratio.value() > 1e4);
  CHECK(says(result,
             "is weights: first at batch 0, head 1, row 3, column 2; 1 of 10 rows are "
             "apart, all of head 1."));
  CHECK(says(result, "There it is 0.875 where the reference is "));
  CHECK(says(result,
             " raw_scores, scores and masked_scores agree before it: it arises in "
             "weights = softmax(masked_scores). After it output agrees."));
}

TEST_CASE("steps that are not given are named where they leave it open") {
  const TemporaryFolder folder;
  save_case(causal_call(), folder / "case");
  std::string kernel = kernel_of(folder, {"raw_scores", "output"});
  change(kernel + "/output.npy", 0, 9);
  CompareResult result = compare(both(folder / "case", kernel), {});
  CHECK(result.departs == "output");
  CHECK(says(result,
             " raw_scores agrees before it, scores, masked_scores and weights are not "
             "given: it arises there or in output = weights v."));
  CHECK(mentions(result.notes, "without scores, masked_scores, weights"));
  kernel = kernel_of(folder, {"raw_scores"});
  change(kernel + "/raw_scores.npy", 0, 9);
  result = compare(both(folder / "case", kernel), {});
  CHECK(says(result, " It arises in raw_scores = q k^T."));
  // What follows is of other inputs, then.
  kernel = kernel_of(folder, {"q", "output"});
  change(kernel + "/q.npy", 3, 9);
  result = compare(both(folder / "case", kernel), {});
  CHECK(result.departs == "q");
  CHECK(says(result, "It is an input: the two are not of the same call."));
  CHECK(names_of(result) == std::vector<std::string>{"q", "output"});
}

TEST_CASE("what is masked on one side alone departs, and has no size") {
  const TemporaryFolder folder;
  AttendOptions call = causal_call();
  save_case(call, folder / "case");
  call.mask.align = Align::bottom_right;
  save_case(call, folder / "shifted");
  const CompareResult result = compare(both(folder / "case", folder / "shifted"), {});
  CHECK(result.departs == "masked_scores");
  CHECK(row_of(result, "masked_scores").error_ratio.has_value());
  CHECK(says(result, "where the reference is -inf. raw_scores and scores agree before it"));
}

TEST_CASE("another case may have a matrix that this one has not") {
  const TemporaryFolder folder;
  AttendOptions call = causal_call();
  save_case(call, folder / "case");
  call.scores.softcap = 1;
  save_case(call, folder / "capped");
  const CompareResult result = compare(both(folder / "case", folder / "capped"), {});
  CHECK(result.departs == "masked_scores");
  CHECK(says(result, "After it weights and output are apart, too."));
  CHECK(mentions(result.notes, "what the case has not: capped_scores"));
}

TEST_CASE("a tolerance that a careless answer passes is said to tell nothing") {
  const TemporaryFolder folder;
  save_case(causal_call(), folder / "case");
  CompareOptions options = both(folder / "case", folder / "case");
  options.atol = 10;
  const CompareResult result = compare(options, {});
  CHECK(result.equal);
  CHECK(row_of(result, "output").careless_passes.value());
  CHECK(says(result, "This tolerance tells nothing of weights and output: a careless answer"));
  // The mean over all keys is no better an answer.
  const CompareRow& output = row_of(result, "output");
  options.atol = std::min(*output.careless_error, *output.careless_all_error) * 1.001;
  options.rtol = 0;
  CHECK(row_of(compare(options, {}), "output").careless_passes.value());
  options.atol = std::min(*output.careless_error, *output.careless_all_error) * .999;
  CHECK_FALSE(row_of(compare(options, {}), "output").careless_passes.value());
}

TEST_CASE("a candidate is judged in the narrower dtype, its own or that of the case") {
  const TemporaryFolder folder;
  AttendOptions call = causal_call();
  const AttendResult wide = save_case(call, folder / "case");
  write_tensor(folder / "half.npy", wide.output->cast(DType::float16), "test");
  CompareRow row = compare(both(folder / "case", folder / "half.npy"), {}).rows.at(0);
  CHECK(row.equal);
  CHECK(row.plain_dtype == "float16");
  CHECK(row.atol >= 1e-3);
  CHECK(row.rtol == 1e-3);
  // .npy has bfloat16 as float32, text everything as float64.
  call.sizes.dtype = Precision::bfloat16;
  const AttendResult brain = save_case(call, folder / "case");
  write_tensor(folder / "brain.json", *brain.output, "test");
  for (const std::string& other : {folder / "case", folder / "brain.json"}) {
    row = row_of(compare(both(folder / "case", other), {}), "output");
    CHECK(row.equal);
    CHECK(row.plain_dtype == "bfloat16");
    CHECK(row.max_ulp.value() <= 1);
  }
  CHECK(row_of(compare(both(folder / "case", folder / "case"), {}), "output").dtype_b ==
        "bfloat16");
}

TEST_CASE("more than four times the error of the plain path is apart, what is less is not") {
  const TemporaryFolder folder;
  AttendOptions call;
  call.sizes.n = 4;
  call.sizes.d_k = 512;  // scores whose rounding is more than the tolerance of float32
  call.scores.scale = "none";
  save_case(call, folder / "case");
  const CompareRow row = row_of(compare(both(folder / "case", folder / "case"), {}), "raw_scores");
  REQUIRE(*row.plain_error > 1e-6);
  CHECK(row.atol == 4 * *row.plain_error);
  const std::string kernel = kernel_of(folder, {"raw_scores"});
  const double exact = values_of(read_file_of(folder / "case", "reference/raw_scores.npy")).at(2);
  CompareOptions options = both(folder / "case", kernel);
  options.rtol = 0;
  change(kernel + "/raw_scores.npy", 2, exact + 3.5 * *row.plain_error);
  CHECK(compare(options, {}).equal);
  change(kernel + "/raw_scores.npy", 2, exact + 6 * *row.plain_error);
  CHECK_FALSE(compare(options, {}).equal);
}

TEST_CASE("a candidate comes as a folder of any format, a file with names or one tensor") {
  const TemporaryFolder folder;
  const AttendResult result = save_case(causal_call(), folder / "case");
  const std::string kernel = kernel_of(folder, {"weights"});
  write_tensor(kernel + "/output.json", *result.output, "test");
  folder.write("kernel/notes.csv", "1\n");
  const CompareResult got = compare(both(folder / "case", kernel), {});
  CHECK(got.equal);
  CHECK(names_of(got) == std::vector<std::string>{"weights", "output"});
  CHECK(mentions(got.notes, "what the case has not: notes.csv"));
  write_tensor(kernel + "/output.npy", *result.output, "test");
  CHECK(refusal([&] {
          compare(both(folder / "case", kernel), {});
        }).find("has two of output: output.json and output.npy") != std::string::npos);

  const std::string output = result.output->visit([](const auto& tensor) {
    std::string text = "[";
    for (const auto value : tensor.values()) {
      text += (text.size() == 1 ? "" : ",") + std::to_string(static_cast<double>(value));
    }
    return text + "]";
  });
  folder.write("flat.json", output);
  CHECK(refusal([&] {
          compare(both(folder / "case", folder / "flat.json"), {});
        }).find("output: got [60], the case has [2, 5, 6]: shapes must agree") !=
        std::string::npos);
  CHECK(names_of(compare(both(folder / "case", kernel + "/output.npy"), {})) ==
        std::vector<std::string>{"output"});
  // On either side; b is called b all the same.
  const CompareResult swapped = compare(both(kernel + "/weights.npy", folder / "case"), {});
  CHECK(names_of(swapped) == std::vector<std::string>{"weights"});
  CHECK(swapped.rows[0].dtype_a == "float32");
  CHECK(swapped.rows[0].dtype_b == "float64");
}

TEST_CASE("batch and head axes of one may be left out or put in") {
  const TemporaryFolder folder;
  AttendOptions call;
  call.sizes.n = 3;
  const AttendResult result = save_case(call, folder / "case");
  const Tensor<float>& output = result.output->get<float>();
  CompareOptions options = both(folder / "case", "");
  options.b.values = AnyTensor(Tensor<float>(output).reshaped({1, 1, 3, 8}));
  CHECK(compare(options, {}).equal);
  options.b.values = AnyTensor(Tensor<float>(output).reshaped({3, 1, 8}));
  CHECK(refusal([&] { compare(options, {}); }).find("shapes must agree") != std::string::npos);
}

TEST_CASE("what is neither a case nor a candidate is refused in one line") {
  const TemporaryFolder folder;
  save_case(causal_call(), folder / "case");
  fs::create_directory(folder / "empty");
  CHECK(refusal([&] {
          compare(both(folder / "case", folder / "empty"), {});
        }).find("has none of the matrices of the case: q, k, v, raw_scores") != std::string::npos);
  CHECK(refusal([&] {
          compare(both(folder / "empty", folder / "empty"), {});
        }).find("is a folder and no case") != std::string::npos);
  fs::remove(folder / "case/reference/weights.npy");
  CHECK(refusal([&] {
          compare(both(folder / "case", folder / "case"), {});
        }).find("reference/weights.npy") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
