// Traces of calculations in which positions matter.

#include <cmath>

#include "app/render_sample.h"
#include "attnlab/experiments/attend.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "render/trace.h"

namespace attnlab {
namespace {

// As --trace asks for them: of each step where the calculation takes it.
Request all_steps() {
  Request want;
  for (const ResultRef& result : columns_of<AttendResult>()) want.add_step(result.name);
  return want;
}

// Two queries and keys of width 2.
AttendOptions small_attention() {
  AttendOptions options;
  options.query_key.q = given<double>({2, 2}, {1, 0, 2, -1});
  options.query_key.k = given<double>({2, 2}, {0, 1, 3, .5});
  options.value.v = given<double>({2, 1}, {10, 20});
  return options;
}

std::string trace(AttendOptions options) {
  const AttendResult result = attend(options, all_steps());
  return render_trace({"attend", options_of(options), result_of(result), {}}, {});
}

TEST_CASE("a trace writes out how the followed query and key are turned") {
  AttendOptions options = small_attention();
  options.positions.rope_theta = 10000;
  options.mask.offset = 4;
  const std::string text = trace(options);
  CHECK(test::contains(text, "rotated_q = rotate(q)\n"));
  CHECK(test::contains(text,
                       "rotated_q[0, 0] = q[0, 0] cos(4) - q[0, 1] sin(4)\n"
                       "                  = 1*(-0.6536) - 0*(-0.7568)\n"
                       "                  = -0.6536\n"));
  CHECK(test::contains(text, "rotated_k[0, 0] = k[0, 0] cos(0) - k[0, 1] sin(0)\n"));
  CHECK(test::contains(text, "raw_scores = rotated_q rotated_k^T\n"));
  CHECK(test::contains(text, "= rotated_q[0] . rotated_k[0]\n"));
}

TEST_CASE("a trace knows where each alignment puts the queries") {
  AttendOptions options = small_attention();
  options.positions.rope_theta = 10000;
  CHECK(test::contains(trace(options), "cos(0)"));
  options.query_key.k = given<double>({4, 2}, {1, 2, 1, 1, 3, 4, -5, 1});
  options.value.v = given<double>({4, 1}, {1, 2, 3, 4});
  options.mask.align = Align::top_left;
  CHECK(test::contains(trace(options), "rotated_q[0, 0] = q[0, 0] cos(0)"));
  options.mask.align = Align::bottom_right;
  CHECK(test::contains(trace(options), "rotated_q[0, 0] = q[0, 0] cos(2)"));
  options.mask.key_lengths = given<std::int64_t>({1}, {3});
  CHECK_FALSE(test::contains(trace(options), "rotated_q[0, 0] = "));
}

TEST_CASE("keys of a past are not turned again, and new ones stand after them") {
  AttendOptions options = small_attention();
  options.positions.rope_theta = 10000;
  options.mask.causal = true;
  options.value.past.k = given<double>({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  options.value.past.v = given<double>({1, 1, 3, 1}, {1, 2, 3});
  const std::string past = trace(options);
  CHECK(test::contains(past, "q[1, 0] cos(4)"));
  CHECK(test::contains(past, "present_k = concat(past_k, rotated_k)\n"));
  CHECK(test::contains(past, " = rotated_q[1] . present_k["));
  // The key that is followed is the past's, or it stands at its place among all.
  options.value.past.k = given<double>({1, 1, 3, 2}, {0, 0, 0, 0, 0, 0});
  options.query_key.q = given<double>({2, 2}, {1, 0, std::cos(4.), -std::sin(4.)});
  options.query_key.k = given<double>({2, 2}, {0, 1, 90 * std::cos(4.), -90 * std::sin(4.)});
  CHECK(test::contains(trace(options), "rotated_k[1, 0] = k[1, 0] cos(4) - k[1, 1] sin(4)\n"));
}

TEST_CASE("a trace writes out a linear bias, beside what is hidden where anything is") {
  AttendOptions options = small_attention();
  options.positions.alibi = true;
  options.query_key.q = given<double>({2, 2}, {0, 0, 2, 0});
  options.mask.offset = 3;
  const std::string text = trace(options);
  CHECK(test::contains(text,
                       "masked_scores[0, 1] = scores[0, 1] - slope * |3 - 1|\n"
                       "                      = 0 - 0.003906 * 2\n"
                       "                      = -0.007812\n"));
  CHECK_FALSE(test::contains(text, "exp(-inf)"));
  options.mask.causal = true;
  options.mask.offset = {};
  options.query_key.k = given<double>({3, 2}, {0, 1, 3, .5, 1, 1});
  options.value.v = given<double>({3, 1}, {1, 2, 3});
  const std::string masked = trace(options);
  CHECK(test::contains(masked, "masked_scores[1, 1] = scores[1, 1] - slope * |1 - 1|\n"));
  CHECK(test::contains(masked, "query 1 sees 2 of 3 keys"));
}

TEST_CASE("the gradients of what was turned are turned back in their formulas") {
  AttendOptions options = small_attention();
  options.positions.rope_theta = 10000;
  options.gradients.grad_output = given<double>({2, 1}, {1, 2});
  const std::string text = trace(options);
  CHECK(
      test::contains(text, "grad_q = rotate_back(scale J(weights)(grad_output v^T) rotated_k)\n"));
  CHECK(test::contains(text,
                       "grad_k = rotate_back(scale (J(weights)(grad_output v^T))^T rotated_q)\n"));
  CHECK(test::contains(text, "grad_v = weights^T grad_output\n"));
}

}  // namespace
}  // namespace attnlab
