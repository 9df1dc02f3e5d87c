#include <attnlab/core/tensor.h>

#include <iostream>

int main() {
  const attnlab::AnyTensor tensor = attnlab::Tensor<double>({2, 3}, {0, 1, 2, 3, 4, 5});
  const attnlab::Tensor<float> cast = tensor.cast<float>();
  std::cout << cast.shape().str() << ' ' << cast.matrix()(1, 2) << '\n';
  return cast.matrix().sum() == 15 ? 0 : 1;
}
