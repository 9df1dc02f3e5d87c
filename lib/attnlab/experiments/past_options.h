#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/attention/past.h"
#include "attnlab/core/describe.h"

namespace attnlab {

// The past of a decoder.
struct PastOptions {
  TensorSource k, v;

  static constexpr auto fields() {
    using O = PastOptions;
    return std::tuple(
        field("past_k", &O::k, "keys put before K, [batch, kv_heads, p, d_k]", {.unit = "FILE"}),
        field("past_v", &O::v, "values put before V, [batch, kv_heads, p, d_v]", {.unit = "FILE"}));
  }
};

// The past as read.
struct PastTensors {
  AnyTensor k, v;

  void round_to(DType dtype, std::vector<std::string>& notes);
  // As [batch, kv_heads, p, d]. Throws InputError.
  template <class T>
  Past<T> as() const;
};

// Nothing where none is given. Throws InputError, also when one of the two is missing.
std::optional<PastTensors> read_past(const PastOptions& options, std::vector<std::string>& notes);

}  // namespace attnlab
