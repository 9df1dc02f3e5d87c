#include <string>

#include "attnlab/core/error.h"
#include "attnlab/experiments/compare.h"
#include "catch.h"
#include "experiments/attention_cases.h"
#include "fuzz/mutate.h"

namespace attnlab {
namespace {

// Whether a kernel is held against the case; any other exception than an InputError fails the test.
bool is_compared(const std::string& a, const std::string& b) {
  CompareOptions options;
  options.a.path = a;
  options.b.path = b;
  try {
    compare(options, {});
    return true;
  } catch (const InputError&) {
    return false;
  }
}

TEST_CASE("a case whose description is mutated is compared or refused") {
  const TemporaryFolder folder;
  AttendOptions call = causal_call();
  call.sizes.n = call.sizes.m = 2;
  save_case(call, folder / "case");
  const std::string text = folder.read("case/case.json");
  Bits bits(8);
  int taken = 0;
  for (int run = 0; run < 2000; ++run) {
    std::string bytes = text;
    for (std::size_t n = 1 + bits.below(3); n > 0; --n) mutate(bytes, bits);
    folder.write("case/case.json", bytes);
    CAPTURE(run);
    taken += is_compared(folder / "case", folder / "case/output.npy");
  }
  CHECK(taken > 50);
  CHECK(taken < 1950);
}

TEST_CASE("a case whose matrices are mutated is compared or refused") {
  const TemporaryFolder folder;
  AttendOptions call = causal_call();
  call.sizes.n = call.sizes.m = 2;
  save_case(call, folder / "case");
  save_case(call, folder / "kernel");
  const std::vector<std::string> files = {"case/reference/weights.npy", "kernel/output.npy",
                                          "case/mean_of_seen_keys/output.npy"};
  Bits bits(9);
  int taken = 0;
  for (int run = 0; run < 1000; ++run) {
    const std::string& file = files[bits.below(files.size())];
    const std::string before = folder.read(file);
    std::string bytes = before;
    for (std::size_t n = 1 + bits.below(3); n > 0; --n) mutate(bytes, bits);
    folder.write(file, bytes);
    CAPTURE(run);
    taken += is_compared(folder / "case", folder / "kernel");
    folder.write(file, before);
  }
  CHECK(taken > 50);
  CHECK(taken < 950);
}

}  // namespace
}  // namespace attnlab
