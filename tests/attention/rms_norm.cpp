#include "attnlab/attention/rms_norm.h"

#include "attention/attention_test.h"

namespace attnlab {
namespace {

using test::close;
using test::error_of;
using test::Numbers;
using test::says;

TEST_CASE("a row is divided by its root mean square, then multiplied with the weights") {
  const Tensor<double> x({2, 2}, {3, 4, 0, 0}), weight({2}, {1, -2});
  const double rms = std::sqrt(12.5 + 1e-6);
  CHECK(close(rms_norm(x, weight, 1e-6, "q_norm"), {3 / rms, -8 / rms, 0, 0}, 1e-15));
  CHECK(close(rms_norm(x, weight, 12.5, "q_norm"), {.6, -1.6, 0, 0}, 1e-15));
}

TEST_CASE("a normed row has a root mean square of 1, whatever its size") {
  Numbers numbers;
  for (const double size : {1e-100, 1.0, 1e100}) {
    const auto x = numbers.tensor<double>({2, 3, 4, 16}, size);
    const auto normed = rms_norm(x, Tensor<double>({16}, 1), 1e-300, "q_norm");
    for (Index row = 0; row < 24; ++row) {
      CHECK(normed.matrix(row / 4).row(row % 4).squaredNorm() == Approx(16));
    }
  }
}

TEST_CASE("float32 rows are normed in float64 and rounded once") {
  Numbers numbers;
  const auto x = numbers.tensor<float>({1, 2, 20, 12}, 1e30), weight = numbers.tensor<float>({12});
  const auto wide =
      rms_norm(AnyTensor(x).cast<double>(), AnyTensor(weight).cast<double>(), 1e-6, "q_norm");
  CHECK(test::same_bits(rms_norm(x, weight, 1e-6, "q_norm"), AnyTensor(wide).cast<float>()));
}

TEST_CASE("gradients of a norm are those of central differences") {
  Numbers numbers;
  const auto x = numbers.tensor<double>({2, 2, 3, 5}), grad = numbers.tensor<double>({2, 2, 3, 5});
  const auto weight = numbers.tensor<double>({5});
  const auto loss = [&](const Tensor<double>& at, const Tensor<double>& w) {
    const auto normed = rms_norm(at, w, .3, "q_norm");
    double sum = 0;
    for (Index i = 0; i < grad.size(); ++i) sum += grad[i] * normed[i];
    return sum;
  };
  const double h = 1e-6;
  const auto gradients = rms_norm_backward(x, weight, .3, grad);
  for (Index i = 0; i < x.size(); ++i) {
    auto above = x, below = x;
    above[i] += h;
    below[i] -= h;
    CHECK(gradients.grad_x[i] ==
          Approx((loss(above, weight) - loss(below, weight)) / (2 * h)).margin(1e-9));
  }
  for (Index i = 0; i < 5; ++i) {
    auto above = weight, below = weight;
    above[i] += h;
    below[i] -= h;
    CHECK(gradients.grad_weight[i] ==
          Approx((loss(x, above) - loss(x, below)) / (2 * h)).margin(1e-9));
  }
}

TEST_CASE("a row without a gradient adds nothing, NaN in it or not") {
  const Tensor<double> x({3, 2}, {1, 2, test::kNan, 1, test::kInfinity, 0});
  const auto gradients = rms_norm_backward(x, Tensor<double>({2}, {1, 2}), 1e-6,
                                           Tensor<double>({3, 2}, {1, 1, 0, 0, 0, 0}));
  for (Index i = 2; i < 6; ++i) CHECK(gradients.grad_x[i] == 0);
  CHECK(std::isfinite(gradients.grad_weight[0]));
  CHECK(gradients.grad_weight[1] != 0);
}

TEST_CASE("norms that do not fit are refused by name") {
  const auto error = [](const Shape& weight, double eps) {
    return error_of([&] { rms_norm(Tensor<float>({2, 4}), Tensor<float>(weight), eps, "k_norm"); });
  };
  CHECK(says(error({3}, 1e-6), {"k_norm: got [3]", "[d_k] = [4]"}));
  CHECK(says(error({1, 4}, 1e-6), {"k_norm: got [1, 4]"}));
  for (const double eps : {0.0, -1.0, test::kNan, test::kInfinity}) {
    CHECK(says(error({4}, eps), {"qk_norm_eps: got ", "above 0"}));
  }
}

}  // namespace
}  // namespace attnlab
