#pragma once

#include "attention/attention_test.h"

namespace attnlab::test {

// A layer of these sizes, its weights and biases in [-1, 1).
template <class T>
MultiHeadParams<T> some_params(const MultiHeadShape& s) {
  Numbers numbers(11);
  MultiHeadParams<T> params;
  params.heads = s.heads;
  params.kv_heads = s.kv_heads;
  params.w_q = numbers.tensor<T>({s.d_query, s.heads * s.d_k});
  params.w_k = numbers.tensor<T>({s.d_key, s.kv_heads * s.d_k});
  params.w_v = numbers.tensor<T>({s.d_value, s.kv_heads * s.d_v});
  params.w_o = numbers.tensor<T>({s.heads * s.d_v, s.d_output});
  if (s.bias) {
    params.b_q = numbers.tensor<T>({s.heads * s.d_k});
    params.b_k = numbers.tensor<T>({s.kv_heads * s.d_k});
    params.b_v = numbers.tensor<T>({s.kv_heads * s.d_v});
    params.b_o = numbers.tensor<T>({s.d_output});
  }
  return params;
}

// Every width another, and fewer key/value heads than query heads.
inline constexpr MultiHeadShape kGrouped = {.d_query = 7,
                                            .d_key = 5,
                                            .d_value = 6,
                                            .d_output = 3,
                                            .heads = 4,
                                            .kv_heads = 2,
                                            .d_k = 3,
                                            .d_v = 2,
                                            .bias = true};

}  // namespace attnlab::test
