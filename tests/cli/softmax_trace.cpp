// The walk through softmax tells of the method that was chosen.

#include "catch.h"
#include "cli/run_binary.h"

namespace attnlab {
namespace {

TEST_CASE("the trace of naive softmax tells what it does") {
  const Outcome stable = attnlab({"softmax", "1", "2", "--trace"});
  CHECK(stable.out.find("the largest is taken") != std::string::npos);
  const Outcome naive = attnlab({"softmax", "1", "2", "--trace", "--method", "naive"});
  CHECK(naive.out.find("the largest is taken") == std::string::npos);
  CHECK(naive.out.find("less their maximum") == std::string::npos);
  CHECK(naive.out.find("max x") == std::string::npos);
  CHECK(naive.out.find("can overflow") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
