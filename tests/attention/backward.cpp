// scaled_dot_product_backward against plain loops and against central differences, over awkward
// shapes and every combination of options.

#include "attnlab/attention/scaled_dot_product_backward.h"

#include "attention/reference_case.h"
#include "share.h"

namespace attnlab {
namespace {

using test::Case;
using test::close;

template <class T>
AttentionGradients<T> differentiate(const test::DrawnCase<T>& drawn, const Tensor<T>& grad_output) {
  return scaled_dot_product_backward(drawn.q, drawn.k, drawn.v, grad_output, drawn.mask,
                                     drawn.settings);
}

// What dropout multiplied each weight with, seen from outside: with V = 1 the output is the dropped
// weights.
Tensor<double> dropout_factors(const test::DrawnCase<double>& drawn) {
  const Index m = drawn.k.shape()[2];
  Tensor<double> identity({drawn.k.shape()[0], drawn.k.shape()[1], m, m});
  for (Index i = 0; i < identity.shape().matrices(); ++i) identity.matrix(i).setIdentity();
  auto forward =
      scaled_dot_product(drawn.q, drawn.k, identity, drawn.mask, drawn.settings, {"weights"});
  for (Index i = 0; i < forward.output.size(); ++i) {
    const double weight = (*forward.weights)[i];
    forward.output[i] = weight == 0 ? 0 : forward.output[i] / weight;
  }
  return std::move(forward.output);
}

template <class T>
Tensor<T> cotangent(const test::DrawnCase<T>& drawn) {
  const Shape& q = drawn.q.shape();
  return test::Numbers(5).tensor<T>({q[0], q[1], q[2], drawn.v.shape()[3]});
}

template <class T>
void check_loops(const Case& c, double tolerance) {
  INFO(test::name_of(c));
  test::DrawnCase<T> drawn = test::draw_case<T>(c);
  const Tensor<T> grad_output = cotangent(drawn);
  if constexpr (std::is_same_v<T, double>) {
    if (c.dropout) {
      drawn.call.kept = [factors = dropout_factors(drawn)](std::size_t b, std::size_t h,
                                                           std::size_t i, std::size_t j) {
        return factors[static_cast<Index>(test::at(factors, b, h, i, j))];
      };
    }
  }
  const auto gradients = differentiate(drawn, grad_output);
  const reference::Gradients expected =
      reference::differentiate(drawn.call, test::doubles(grad_output));
  const double size = tolerance * static_cast<double>((c.n + c.m) * c.heads);
  CHECK(close(*gradients.grad_q, expected.grad_q, size));
  CHECK(close(*gradients.grad_k, expected.grad_k, size));
  CHECK(close(*gradients.grad_v, expected.grad_v, size));
}

TEST_CASE("gradients equal plain loops over awkward shapes") {
  const std::vector<Index> lengths = {1, 2, 3, 17, 65};
  for (const Index n : lengths) {
    for (const Index m : lengths) {
      for (const Index d : {1, 2, 7, 16}) {
        Case c{.n = n, .m = m, .d_k = d, .d_v = 1 + 18 % d};
        check_loops<double>(c, 4e-16);
        c.causal = c.additive = true;
        check_loops<float>(c, 4e-7);
      }
    }
  }
}

TEST_CASE("gradients equal plain loops under every combination of options") {
  for (int options = 0; options < 256; options += test::kCombinationStep) {
    for (const auto& [heads, kv_heads] : {std::pair<Index, Index>{1, 1}, {6, 2}, {4, 1}}) {
      for (const auto& [n, m] : {std::pair<Index, Index>{1, 7}, {5, 3}, {66, 70}}) {
        if (n == 66 && heads == 6) continue;  // the loops are slow
        Case c{.batch = 2, .heads = heads, .kv_heads = kv_heads, .n = n, .m = m, .d_k = 5};
        c.d_v = 3;
        c = test::with_options(c, options);
        check_loops<double>(c, 1e-15);
        if (!c.dropout) check_loops<float>(c, 1e-6);
      }
    }
  }
}

// ||gradient - differences|| <= 1e-8 ||differences|| for one of q, k and v, `moved`.
void check_differences(const test::DrawnCase<double>& drawn, const Tensor<double>& grad_output,
                       Tensor<double> test::DrawnCase<double>::*moved,
                       const Tensor<double>& gradient) {
  const double h = 1e-5;
  test::DrawnCase<double> at = drawn;
  const auto output = [&] {
    return scaled_dot_product(at.q, at.k, at.v, at.mask, at.settings).output;
  };
  double squares = 0, error_squares = 0;
  for (Index i = 0; i < gradient.size(); ++i) {
    double& x = (at.*moved)[i];
    const double centre = x;
    x = centre + h;
    const Tensor<double> above = output();
    x = centre - h;
    const Tensor<double> below = output();
    x = centre;
    double difference = 0;
    for (Index o = 0; o < above.size(); ++o) difference += grad_output[o] * (above[o] - below[o]);
    difference /= 2 * h;
    squares += difference * difference;
    error_squares += (gradient[i] - difference) * (gradient[i] - difference);
  }
  // A gradient of 0 leaves what rounding does to the differences.
  CHECK(std::sqrt(error_squares) <= std::max(1e-8 * std::sqrt(squares), 2e-10));
}

TEST_CASE("gradients are those of central differences, for a cotangent without pattern") {
  for (int options = 0; options < 256; options += test::kCombinationStep) {
    for (const auto& [n, m, d_k, d_v] :
         {std::array<Index, 4>{4, 5, 3, 2}, {3, 1, 1, 4}, {1, 6, 2, 1}}) {
      Case c{.batch = 2, .heads = 2, .kv_heads = 1, .n = n, .m = m, .d_k = d_k, .d_v = d_v};
      c = test::with_options(c, options);
      INFO(test::name_of(c));
      using Drawn = test::DrawnCase<double>;
      const Drawn drawn = test::draw_case<double>(c);
      const Tensor<double> grad_output = cotangent(drawn);
      const auto gradients = differentiate(drawn, grad_output);
      check_differences(drawn, grad_output, &Drawn::q, *gradients.grad_q);
      check_differences(drawn, grad_output, &Drawn::k, *gradients.grad_k);
      check_differences(drawn, grad_output, &Drawn::v, *gradients.grad_v);
    }
  }
}

}  // namespace
}  // namespace attnlab
