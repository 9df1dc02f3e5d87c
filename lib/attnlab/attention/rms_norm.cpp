#include "attnlab/attention/rms_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

// r of one row.
template <class T>
double inverse_rms(const T* row, Index d, double eps) {
  double squares = 0;
  for (Index c = 0; c < d; ++c)
    squares += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  return 1 / std::sqrt(squares / static_cast<double>(d) + eps);
}

}  // namespace

template <class T>
Tensor<T> rms_norm(const Tensor<T>& x, const Tensor<T>& weight, double eps, std::string_view name) {
  const Index d = x.shape()[-1];
  if (weight.shape() != Shape{d}) {
    throw InputError("", name, weight.shape().str(), fmt::format("need [d_k] = [{}]", d));
  }
  if (!(eps > 0 && std::isfinite(eps))) {
    throw InputError("", "qk_norm_eps", fmt::format("{}", eps), "need a finite number above 0");
  }
  Tensor<T> normed = Tensor<T>::uninitialized(x.shape());
  for (Index at = 0; at < x.size(); at += d) {
    const double r = inverse_rms(x.data() + at, d, eps);
    for (Index c = 0; c < d; ++c) {
      normed[at + c] =
          static_cast<T>(static_cast<double>(x[at + c]) * r * static_cast<double>(weight[c]));
    }
  }
  return normed;
}

template <class T>
RmsNormGradients<T> rms_norm_backward(const Tensor<T>& x, const Tensor<T>& weight, double eps,
                                      const Tensor<T>& grad) {
  const Index d = x.shape()[-1];
  RmsNormGradients<T> gradients{Tensor<T>(x.shape()), Tensor<T>(weight.shape())};
  std::vector<double> sums(static_cast<std::size_t>(d));
  for (Index at = 0; at < x.size(); at += d) {
    const T* row = x.data() + at;
    const T* grad_row = grad.data() + at;
    if (std::all_of(grad_row, grad_row + d, [](T g) { return g == 0; })) continue;
    const double r = inverse_rms(row, d, eps);
    double mean = 0;
    for (Index c = 0; c < d; ++c) {
      const auto g = static_cast<double>(grad_row[c]), value = static_cast<double>(row[c]);
      mean += g * static_cast<double>(weight[c]) * value / static_cast<double>(d);
      sums[static_cast<std::size_t>(c)] += g * value * r;
    }
    for (Index c = 0; c < d; ++c) {
      const double g = static_cast<double>(grad_row[c]) * static_cast<double>(weight[c]);
      gradients.grad_x[at + c] =
          static_cast<T>(r * (g - static_cast<double>(row[c]) * r * r * mean));
    }
  }
  std::transform(sums.begin(), sums.end(), gradients.grad_weight.data(),
                 [](double sum) { return static_cast<T>(sum); });
  return gradients;
}

template Tensor<float> rms_norm(const Tensor<float>&, const Tensor<float>&, double,
                                std::string_view);
template Tensor<double> rms_norm(const Tensor<double>&, const Tensor<double>&, double,
                                 std::string_view);
template RmsNormGradients<float> rms_norm_backward(const Tensor<float>&, const Tensor<float>&,
                                                   double, const Tensor<float>&);
template RmsNormGradients<double> rms_norm_backward(const Tensor<double>&, const Tensor<double>&,
                                                    double, const Tensor<double>&);

}  // namespace attnlab
