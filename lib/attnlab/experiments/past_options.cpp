#include "attnlab/experiments/past_options.h"

#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/precision.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {

void PastTensors::round_to(DType dtype, std::vector<std::string>& notes) {
  k = rounded_to(dtype, std::move(k), "past_k", notes);
  v = rounded_to(dtype, std::move(v), "past_v", notes);
}

template <class T>
Past<T> PastTensors::as() const {
  return {to_heads(k.cast<T>(), std::nullopt, "past_k", "kv_heads"),
          to_heads(v.cast<T>(), std::nullopt, "past_v", "kv_heads")};
}

std::optional<PastTensors> read_past(const PastOptions& options, std::vector<std::string>& notes) {
  if (options.k.empty() != options.v.empty()) {
    throw InputError("", options.k.empty() ? "past_k" : "past_v", "",
                     "is needed: past keys and past values come together");
  }
  if (options.k.empty()) return std::nullopt;
  return PastTensors{read_tensor(options.k, "past_k", notes),
                     read_tensor(options.v, "past_v", notes)};
}

template Past<float> PastTensors::as() const;
template Past<double> PastTensors::as() const;

}  // namespace attnlab
