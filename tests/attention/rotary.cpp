#include "attnlab/attention/rotary.h"

#include "attention/attention_test.h"

namespace attnlab {
namespace {

using test::close;
using test::error_of;
using test::Numbers;
using test::same_bits;
using test::says;

TEST_CASE("a row of width 4 is turned as the formula says, its halves in pairs") {
  // Base 100: the pairs (x0, x2) and (x1, x3) turn by 1 and 1/10 a position.
  const auto turned = rotate(Tensor<double>({1, 1, 1, 4}, {1, 2, 3, 4}), {100, {3}});
  CHECK(close(turned,
              {std::cos(3.0) - 3 * std::sin(3.0), 2 * std::cos(.3) - 4 * std::sin(.3),
               3 * std::cos(3.0) + std::sin(3.0), 4 * std::cos(.3) + 2 * std::sin(.3)},
              1e-15));
}

// The numbers are of 40 digits, by mpmath.
TEST_CASE("far positions turn by their angle, either way, as far as any are allowed") {
  const auto far = rotate(Tensor<double>({1, 1, 1, 4}, {1, 1, 0, 0}), {10000, {Index{1} << 28}});
  CHECK(close(far, {-.1655689794905788, -.2924501015990036, -.9861982118369757, .9562807841187297},
              1e-9));
  const auto back = rotate(Tensor<double>({1, 1, 1, 6}, {0, 1, 0, 0, 0, 0}), {5e5, {-12345678}});
  CHECK(close(back, {0, .7387447542114068, 0, 0, .6739853026032007, 0}, 1e-9));
}

TEST_CASE("each row stands at the offset of its batch entry plus its index, in every head") {
  Numbers numbers;
  const auto x = numbers.tensor<double>({2, 3, 4, 6});
  const auto turned = rotate(x, {1000, {5, -7}});
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 3; ++h) {
      for (Index i = 0; i < 4; ++i) {
        Tensor<double> row({1, 1, 1, 6});
        row.matrix() = x.matrix(b * 3 + h).row(i);
        const auto alone = rotate(row, {1000, {(b == 0 ? 5 : -7) + i}});
        CHECK(alone.matrix() == turned.matrix(b * 3 + h).row(i));
      }
    }
  }
}

TEST_CASE("position 0 and the rows before the first to be turned stay as they are") {
  Numbers numbers;
  const auto x = numbers.tensor<double>({1, 2, 5, 4});
  const auto turned = rotate(x, {10000, {-3}, 2});
  for (Index h = 0; h < 2; ++h) {
    CHECK(turned.matrix(h).topRows(2) == x.matrix(h).topRows(2));
    CHECK(turned.matrix(h).row(2) != x.matrix(h).row(2));
    CHECK(turned.matrix(h).row(3) == x.matrix(h).row(3));  // at 0
    CHECK(turned.matrix(h).row(4) != x.matrix(h).row(4));
  }
  CHECK(same_bits(rotate(x, {10000, {0}, 5}), x));
  CHECK(same_bits(rotate(x, {10000, {0}, 9}), x));
}

TEST_CASE("turning keeps the norm of every pair") {
  Numbers numbers;
  const auto x = numbers.tensor<double>({1, 1, 9, 8});
  const auto turned = rotate(x, {10000, {1000}});
  for (Index i = 0; i < 9; ++i) {
    for (Index c = 0; c < 4; ++c) {
      CHECK(std::hypot(turned.matrix()(i, c), turned.matrix()(i, c + 4)) ==
            Approx(std::hypot(x.matrix()(i, c), x.matrix()(i, c + 4))).epsilon(1e-14));
    }
  }
}

TEST_CASE("a match of a query and a key depends on how far they stand apart alone") {
  Numbers numbers;
  const auto q = numbers.tensor<double>({1, 1, 5, 8}), k = numbers.tensor<double>({1, 1, 7, 8});
  const auto match = [&](Index q_offset, Index k_offset) {
    const auto queries = rotate(q, {10000, {q_offset}}), keys = rotate(k, {10000, {k_offset}});
    return Matrix<double>(queries.matrix() * keys.matrix().transpose());
  };
  const Matrix<double> here = match(3, 0);
  CHECK((match(3 + 1000, 1000) - here).cwiseAbs().maxCoeff() < 1e-12);
  CHECK((match(3 - 50, -50) - here).cwiseAbs().maxCoeff() < 1e-12);
  CHECK((match(4, 0) - here).cwiseAbs().maxCoeff() > .1);
}

TEST_CASE("turning back undoes turning") {
  Numbers numbers;
  const auto x = numbers.tensor<double>({2, 2, 3, 10});
  const Rotary rotary{.theta = 500, .offsets = {-4, 1000}, .from = 1};
  CHECK(close(rotate_back(rotate(x, rotary), rotary), test::doubles(x), 1e-15));
}

TEST_CASE("turning back takes a gradient to before the turn, by central differences") {
  Numbers numbers;
  const auto x = numbers.tensor<double>({2, 1, 3, 4});
  const auto grad = numbers.tensor<double>({2, 1, 3, 4});
  const Rotary rotary{.theta = 20, .offsets = {5, -2}, .from = 1};
  const auto loss = [&](const Tensor<double>& at) {
    const auto turned = rotate(at, rotary);
    double sum = 0;
    for (Index i = 0; i < grad.size(); ++i) sum += grad[i] * turned[i];
    return sum;
  };
  const auto gradient = rotate_back(grad, rotary);
  for (Index i = 0; i < x.size(); ++i) {
    auto above = x, below = x;
    above[i] += 1e-4;
    below[i] -= 1e-4;
    CHECK(gradient[i] == Approx((loss(above) - loss(below)) / 2e-4).margin(1e-10));
  }
}

TEST_CASE("float32 is rounded once, from what float64 gives") {
  Numbers numbers;
  const auto single = numbers.tensor<float>({1, 2, 50, 16});
  const Rotary rotary{.theta = 10000, .offsets = {100000}};
  const auto wide = rotate(AnyTensor(single).cast<double>(), rotary);
  CHECK(same_bits(rotate(single, rotary), AnyTensor(wide).cast<float>()));
}

TEST_CASE("rotated rows are the same bits for any number of threads") {
  Numbers numbers;
  const auto x = numbers.tensor<float>({2, 3, 400, 64});
  for (const Rotary& rotary :
       {Rotary{.theta = 10000, .offsets = {7, 9}}, Rotary{.theta = 10000, .from = 70}}) {
    const auto one = rotate(x, rotary, 1);
    CHECK(same_bits(one, rotate(x, rotary, 3)));
    CHECK(same_bits(rotate_back(one, rotary, 1), rotate_back(one, rotary, 3)));
  }
}

TEST_CASE("what cannot be turned is refused by the name of its option") {
  const auto error = [](const Shape& shape, const Rotary& rotary) {
    return error_of([&] { rotate(Tensor<float>(shape), rotary); });
  };
  CHECK(says(error({1, 1, 2, 3}, {}), {"rope_theta: got d_k = 3 in [1, 1, 2, 3]", "even d_k"}));
  CHECK(says(error({2, 4}, {}), {"rope_theta: got [2, 4]", "4 axes"}));
  for (const double theta : {.5, 0.0, -1.0, test::kNan, test::kInfinity}) {
    CHECK(says(error({1, 1, 2, 4}, {theta}), {"rope_theta: got ", "at least 1"}));
  }
  CHECK(says(error({2, 1, 2, 4}, {10, {1, 2, 3}}), {"offset: got 3 values", "2 batch"}));
  const Index most = kMostRotaryPosition;
  CHECK(error({1, 1, 2, 4}, {10, {most - 1}}).empty());
  CHECK(says(error({1, 1, 2, 4}, {10, {most}}), {"rope_theta: got ", "268435456"}));
  CHECK(error({1, 1, 2, 4}, {10, {-most}}).empty());
  CHECK(says(error({1, 1, 2, 4}, {10, {-most - 1}}), {"rope_theta: got ", "-268435457"}));
  CHECK(error({1, 1, 2, 4}, {10, {-most - 1}, 1}).empty());
  for (const Index end : {std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min()}) {
    CHECK(says(error({1, 1, 2, 4}, {10, {end}}), {"rope_theta: got "}));
    CHECK(error({1, 1, 0, 4}, {10, {end}}).empty());
  }
}

}  // namespace
}  // namespace attnlab
