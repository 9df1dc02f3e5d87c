#include "attnlab/core/tensor.h"

#include <limits>

#include "attnlab/core/error.h"
#include "catch.h"

namespace attnlab {
namespace {

TEST_CASE("a shape counts its elements and refuses what it cannot hold") {
  CHECK(Shape{}.size() == 1);
  CHECK(Shape({2, 3, 4, 5}).size() == 120);
  CHECK(Shape({2, 3, 4, 5}).matrices() == 6);
  CHECK(Shape({2, 0}).size() == 0);
  CHECK(Shape({2, 3})[-1] == 3);
  CHECK(Shape({2, 3}).str() == "[2, 3]");
  const Index huge = std::numeric_limits<Index>::max() / 2;
  CHECK_THROWS_AS(Shape({huge, 3}), InputError);
  CHECK_THROWS_AS(Shape({0, huge, 3}), InputError);
  CHECK_THROWS_AS(Shape({-1}), InputError);
  CHECK_THROWS_AS(Shape({1, 1, 1, 1, 1}), InputError);
}

TEST_CASE("a byte count that overflows is nothing") {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(checked_bytes(std::vector<std::uint64_t>{2, 3}, 8) == 48);
  CHECK_FALSE(checked_bytes(std::vector<std::uint64_t>{most, 2}, 1));
  CHECK(checked_bytes(std::vector<std::uint64_t>{most, 1}, 1) == most);
}

TEST_CASE("a matrix of a tensor is a view of its last two axes") {
  Tensor<float> t({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(t.matrix(1)(1, 2) == 11);
  t.matrix(1)(0, 0) = 60;
  CHECK(t[6] == 60);
  const Tensor<float> copy = t;
  t[6] = 6;
  CHECK(copy[6] == 60);
}

TEST_CASE("a tensor of any type casts with one rounding") {
  const AnyTensor t = Tensor<double>({3}, {1.0, 0.1, 65520.0});
  CHECK(t.dtype() == DType::float64);
  CHECK(t.cast<float>()[1] == 0.1f);
  CHECK(std::isinf(static_cast<float>(t.cast<Float16>()[2])));
  CHECK(t.cast(DType::bfloat16).at(1) == Approx(0.1).epsilon(0.004));
  CHECK(AnyTensor(Tensor<bool>({2}, {true, false})).at(0) == 1);
}

}  // namespace
}  // namespace attnlab
