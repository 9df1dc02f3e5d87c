// What attention refuses, before it computes: the message names the tensors and both numbers.

#include "attention/attention_test.h"

namespace attnlab {
namespace {

using test::error_of;
using test::kInfinity;
using test::kNan;
using test::no_mask;
using test::says;

std::string shape_error(const Shape& q, const Shape& k, const Shape& v) {
  return error_of([&] {
    const Mask mask(q.rank() == 4 ? q[0] : 1, q.rank() == 4 ? q[1] : 1, q.rank() == 4 ? q[2] : 1,
                    k.rank() == 4 ? k[2] : 1);
    scaled_dot_product(Tensor<float>(q), Tensor<float>(k), Tensor<float>(v), mask, {});
  });
}

TEST_CASE("shapes that do not agree are refused with both tensors and both numbers") {
  CHECK(says(shape_error({1, 1, 2, 8}, {1, 1, 5, 8}, {1, 1, 6, 8}),
             {"k: got m = 5", "need 6 as in v"}));
  CHECK(says(shape_error({1, 1, 2, 8}, {1, 1, 5, 7}, {1, 1, 5, 8}),
             {"k: got d_k = 7", "need 8 as in q"}));
  CHECK(says(shape_error({4, 1, 2, 8}, {1, 1, 5, 8}, {1, 1, 5, 8}),
             {"k: got batch = 1", "need 4 as in q"}));
  CHECK(says(shape_error({4, 1, 2, 8}, {4, 1, 5, 8}, {1, 1, 5, 8}),
             {"v: got batch = 1", "need 4 as in q"}));
  CHECK(says(shape_error({1, 6, 2, 8}, {1, 3, 5, 8}, {1, 2, 5, 8}),
             {"k: got heads = 3", "need 2 as in v"}));
  CHECK(says(shape_error({1, 3, 2, 8}, {1, 2, 5, 8}, {1, 2, 5, 8}),
             {"q: got 3 heads", "the 2 heads of k and v"}));
  CHECK(says(shape_error({1, 3, 2, 8}, {1, 0, 5, 8}, {1, 0, 5, 8}), {"q: got 3 heads", "0 heads"}));
  CHECK(says(shape_error({1, 0, 2, 8}, {1, 1, 5, 8}, {1, 1, 5, 8}), {"q: got [1, 0, 2, 8]"}));
  CHECK(says(shape_error({1, 1, 2, 0}, {1, 1, 5, 0}, {1, 1, 5, 8}), {"q: got", "d_k"}));
  CHECK(says(shape_error({2, 8}, {1, 1, 5, 8}, {1, 1, 5, 8}), {"q: got [2, 8]", "4 axes"}));
  CHECK(says(shape_error({1, 1, 2, 8}, {5, 8}, {1, 1, 5, 8}), {"k: got [5, 8]", "4 axes"}));
  CHECK(says(shape_error({1, 1, 2, 8}, {1, 1, 5, 8}, {5}), {"v: got [5]", "4 axes"}));
}

TEST_CASE("a mask of other scores is refused with both shapes") {
  const Tensor<float> q({2, 3, 4, 5}), k({2, 3, 6, 5});
  for (const Mask& mask : {Mask(1, 3, 4, 6), Mask(2, 1, 4, 6), Mask(2, 3, 6, 4)}) {
    CHECK(says(error_of([&] { scaled_dot_product(q, k, k, mask, {}); }),
               {"mask: got [", "[2, 3, 4, 6]"}));
  }
}

template <class T>
std::string setting_error(const AttentionSettings& settings) {
  const Tensor<T> q({1, 1, 2, 3});
  return error_of([&] { scaled_dot_product(q, q, q, no_mask(q, q), settings); });
}

TEST_CASE("scale, softcap and dropout outside their range are refused") {
  for (const double scale : {kNan, kInfinity, -kInfinity}) {
    CHECK(says(setting_error<double>({.scale = scale}), {"scale: got ", "finite"}));
  }
  CHECK(says(setting_error<float>({.scale = -1e39}), {"scale: got -1e+39", "float32"}));
  CHECK(setting_error<double>({.scale = -1e39}).empty());
  CHECK(setting_error<double>({.scale = 0}).empty());
  for (const double cap : {0.0, -1.0, kNan, kInfinity}) {
    CHECK(says(setting_error<double>({.softcap = cap}), {"softcap: got ", "above 0"}));
  }
  CHECK(says(setting_error<float>({.softcap = 1e-60}), {"softcap: got 1e-60"}));
  CHECK(says(setting_error<float>({.softcap = 1e60}), {"softcap: got 1e+60"}));
  CHECK(setting_error<double>({.softcap = 1e-60}).empty());
  for (const double share : {-.1, 1.0, 2.0, kNan}) {
    CHECK(says(setting_error<double>({.dropout = share}), {"dropout: got ", "less than 1"}));
  }
}

TEST_CASE("matrices there is no memory for are refused at once, with the estimate") {
  // 10^14 scores; without them the same call needs 80 MB.
  const Index n = 10'000'000;
  const Tensor<float> q({1, 1, n, 1}), k({1, 1, n, 1});
  Mask mask = no_mask(q, k);
  mask.set_window(1, 1);
  const auto error = [&](const Request& want) {
    return error_of([&] { scaled_dot_product(q, k, k, mask, {}, want); });
  };
  CHECK(says(error({"weights"}), {"weights: needs 400 TB of memory, "}));
  CHECK(says(error({"weights", "raw_scores"}), {"raw_scores, weights: needs 800 TB of memory, "}));
}

TEST_CASE("past keys and values of other shapes are refused by the name of their option") {
  const Tensor<double> current({2, 3, 4, 5});
  const auto error = [&](const Shape& past) {
    return error_of([&] { append_keys(Tensor<double>(past), current, "past_k"); });
  };
  CHECK(says(error({1, 3, 4, 5}), {"past_k: got batch = 1", "need 2"}));
  CHECK(says(error({2, 2, 4, 5}), {"past_k: got heads = 2", "need 3"}));
  CHECK(says(error({2, 3, 4, 6}), {"past_k: got width = 6", "need 5"}));
  CHECK(says(error({4, 5}), {"past_k: got [4, 5]", "4 axes"}));
  CHECK(error({2, 3, 9, 5}).empty());
}

}  // namespace
}  // namespace attnlab
