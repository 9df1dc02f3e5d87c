#include "attnlab/experiments/save_case.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "attnlab/io/case_file.h"
#include "catch.h"
#include "experiments/attention_cases.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The call again from the files of its case.
AttendResult rerun(const AttendOptions& options, const AttendResult& result,
                   const std::string& path) {
  AttendOptions again = case_options(options, result);
  for (const OptionRef& option : options_of(again)) {
    auto* const* source = std::get_if<TensorSource*>(&option.value);
    if (source != nullptr && !(*source)->empty()) (*source)->path = path + "/" + (*source)->path;
  }
  return attend(again, {"weights"});
}

TEST_CASE("the files of a case give its output again") {
  const TemporaryFolder folder;
  AttendOptions options = causal_call();
  std::vector<AttendOptions> calls = {options};
  options.sizes.kv_heads = 1;
  options.sizes.batch = 2;
  options.mask.key_lengths = given<std::int64_t>({2}, {7, 3});
  options.scores.dropout = .3;
  options.scores.softcap = 2;
  options.run.seed = 5;
  calls.push_back(options);
  for (const Precision dtype : {Precision::bfloat16, Precision::float16, Precision::float64}) {
    options.sizes.dtype = dtype;
    calls.push_back(options);
  }
  AttendOptions packed;
  packed.query_key = {filled({3, 4}, .1), filled({5, 4}, .3)};
  packed.query_key.q.values->get<double>()[5] = .7;
  packed.value.v = filled({5, 4}, .2);
  packed.value.past.k = given<double>({2, 1, 2}, {1, 2, 3, 4});
  packed.value.past.v = given<double>({2, 1, 2}, {5, 6, 7, 8});
  packed.sizes.heads = 2;
  packed.sizes.dtype = Precision::float16;
  packed.mask.mask = given<double>({6}, {0, -kInfinity, .1, 0, 0, 1});
  calls.push_back(packed);
  for (const AttendOptions& call : calls) {
    const std::string path = folder / "case";
    const AttendResult result = save_case(call, path);
    const AttendResult again = rerun(call, result, path);
    CHECK(again.output->dtype() == result.output->dtype());
    CHECK(values_of(again.output) == values_of(result.output));
    CHECK(values_of(again.attention.weights) == values_of(result.attention.weights));
    CHECK(values_of(read_file_of(path, "output.npy")) == values_of(result.output));
    CHECK(values_of(read_file_of(path, "weights.npy")) == values_of(result.attention.weights));
  }
}

TEST_CASE("a case of positions has an offset that no careless answer has a use for") {
  const TemporaryFolder folder;
  AttendOptions options;
  options.sizes.n = 3;
  options.positions.alibi = true;
  options.mask.offset = 2;
  save_case(options, folder / "case");
  // Equal weights on the three keys, wherever they stand.
  const AnyTensor careless = read_file_of(folder / "case", "mean_of_seen_keys/weights.npy");
  for (Index i = 0; i < careless.size(); ++i) CHECK(careless.at(i) == Approx(1 / 3.0));
}

TEST_CASE("a case holds every step there is, and each in float64 from the same inputs") {
  const TemporaryFolder folder;
  AttendOptions options = causal_call();
  options.sizes.dtype = Precision::float16;
  options.gradients.grad_output = filled({2, 5, 6}, .5);
  const std::string path = folder / "case";
  save_case(options, path);
  const CaseDescription description = read_case(path, "a");
  std::vector<std::string> names;
  for (const CaseMatrix& matrix : description.matrices) {
    names.push_back(matrix.name);
    const AnyTensor reference = read_file_of(path, "reference/" + matrix.name + ".npy");
    CHECK(reference.dtype() == DType::float64);
    CHECK(reference.shape() == read_file_of(path, matrix.name + ".npy").shape());
    CHECK(matrix.axes == std::vector<std::string>{"head", "row", "column"});
  }
  CHECK(names == std::vector<std::string>{"q", "k", "v", "raw_scores", "scores", "masked_scores",
                                          "weights", "output", "grad_q", "grad_k", "grad_v"});
  CHECK(description.inputs == std::vector<std::string>{"q", "k", "v", "grad_output"});
  CHECK(description.dtype == DType::float16);
  // The inputs are those of the call, rounded to its dtype.
  CHECK(values_of(read_file_of(path, "reference/q.npy")) == values_of(read_file_of(path, "q.npy")));
  AttendOptions exact;
  exact.query_key = {{.path = path + "/q.npy", .values = {}},
                     {.path = path + "/k.npy", .values = {}}};
  exact.value.v.path = path + "/v.npy";
  exact.sizes.dtype = Precision::float64;
  exact.scores.kernel = Kernel::full;
  exact.mask.causal = true;
  CHECK(values_of(read_file_of(path, "reference/output.npy")) ==
        values_of(attend(exact, {}).output));
}

TEST_CASE("the past of the reference is rounded as that of the call") {
  const TemporaryFolder folder;
  AttendOptions options;
  options.sizes.n = 1;
  options.sizes.d_k = 2;
  options.sizes.dtype = Precision::float16;
  options.value.past.k = given<double>({1, 2}, {.1, 1 / 3.});
  options.value.past.v = given<double>({1, 2}, {.7, 2 / 3.});
  save_case(options, folder / "case");
  CHECK(values_of(read_file_of(folder / "case", "reference/present_v.npy")) ==
        values_of(read_file_of(folder / "case", "present_v.npy")));
  CHECK(values_of(read_file_of(folder / "case", "past_k.npy")) ==
        std::vector<double>{static_cast<double>(Float16(.1f)),
                            static_cast<double>(Float16(1 / 3.f))});
}

TEST_CASE("what is odd about the inputs is said with a case, too") {
  const TemporaryFolder folder;
  AttendOptions options;
  options.query_key.q.path = folder / "q.npy";
  options.query_key.k = options.value.v = filled({2, 2}, 1);
  write_tensor(folder / "q.npy", *filled({2, 2}, 1).values, "test");
  folder.write("q.npy", folder.read("q.npy") + "x");
  const std::vector<std::string> notes = attend(options, {}).notes;
  CHECK(notes.size() == 1);
  CHECK(save_case(options, folder / "case").notes == notes);
}

TEST_CASE("the plain path is measured in the dtype of the call and in narrower ones") {
  const TemporaryFolder folder;
  AttendOptions options = causal_call();
  const auto plain = [&](Precision dtype) {
    options.sizes.dtype = dtype;
    save_case(options, folder / "case");
    return read_case(folder / "case", "a").matrices.back().plain;
  };
  const auto of_float64 = plain(Precision::float64);
  CHECK(of_float64.size() == 3);
  CHECK(of_float64.count(DType::float64) == 0);
  const double wide = of_float64.at(DType::float32).max_abs_error.value();
  const double half = of_float64.at(DType::float16).max_abs_error.value();
  CHECK(wide > 1e-9);
  CHECK(wide < 1e-6);
  CHECK(half > 1e-5);
  CHECK(half < 1e-2);
  CHECK(of_float64.at(DType::bfloat16).max_abs_error.value() > half);
  CHECK(plain(Precision::float16).size() == 2);
  CHECK(plain(Precision::bfloat16).size() == 1);
}

TEST_CASE("the careless answer is the mean of the values that a row may see") {
  const TemporaryFolder folder;
  AttendOptions options;
  options.query_key = {given<double>({2, 1}, {1, 2}), given<double>({3, 1}, {3, -1, 2})};
  options.value.v = given<double>({3, 1}, {6, 12, 30});
  // What is added to scores is no weight of the careless, but what it hides is hidden.
  options.mask.mask = given<double>({2, 3}, {0, 5, -kInfinity, 1, 2, 3});
  save_case(options, folder / "case");
  const auto answer = [&](const std::string& name) {
    return values_of(read_file_of(folder / "case", name));
  };
  CHECK(answer("mean_of_seen_keys/output.npy") == std::vector<double>{9, 16});
  CHECK(answer("mean_of_seen_keys/weights.npy") ==
        std::vector<double>{.5, .5, 0, 1 / 3., 1 / 3., 1 / 3.});
  CHECK(answer("mean_of_all_keys/output.npy") == std::vector<double>{16, 16});
  options.mask = {};
  save_case(options, folder / "case");
  CHECK(answer("mean_of_seen_keys/output.npy") == std::vector<double>{16, 16});
  CHECK_FALSE(fs::exists(folder / "case/mean_of_all_keys"));
}

TEST_CASE("saving a case changes nothing of the result") {
  const TemporaryFolder folder;
  AttendOptions options = causal_call();
  const AttendResult plain = attend(options, {"weights"});
  const AttendResult saved = save_case(options, folder / "case");
  CHECK(values_of(saved.output) == values_of(plain.output));
  CHECK(values_of(saved.attention.weights) == values_of(plain.attention.weights));
  CHECK(saved.empty_rows == plain.empty_rows);
  CHECK(saved.notes == plain.notes);
}

TEST_CASE("a case that cannot be written is refused before the call") {
  const TemporaryFolder folder;
  AttendOptions options;
  options.keep.save_case.path = folder / "no/case";
  options.query_key.q.path = folder / "nowhere.npy";  // would be the next to fail
  CHECK(refusal([&] { attend(options, {}); }).find("save_case") != std::string::npos);
  options.keep.save_case.path = folder.path().string();
  folder.write("thesis.txt", "x");
  CHECK(refusal([&] { attend(options, {}); }).find("no case") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
