#include "attnlab/experiments/attention_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace attnlab {

template <class T>
AttentionMatrices attention_matrices(AttentionResult<T>& from, const HeadLayout& layout,
                                     DType dtype) {
  const auto take = [&](std::optional<Tensor<T>>& matrix) -> std::optional<AnyTensor> {
    if (!matrix) return std::nullopt;
    return AnyTensor(layout.restore_scores(std::move(*matrix))).cast(dtype);
  };
  return {.raw_scores = take(from.raw_scores),
          .scores = take(from.scores),
          .capped_scores = take(from.capped_scores),
          .masked_scores = take(from.masked_scores),
          .weights = take(from.weights)};
}

Request steps_taken(Request want, const ScoreOptions& scores, const MaskOptions& mask,
                    const PositionOptions& positions) {
  if (!positions.rope_theta) {
    want.leave_out_step("rotated_q");
    want.leave_out_step("rotated_k");
  }
  if (!scores.softcap) want.leave_out_step("capped_scores");
  if (!mask.masks() && !positions.alibi) want.leave_out_step("masked_scores");
  return want;
}

void note_non_finite(std::string_view name, const AnyTensor& tensor,
                     std::vector<std::string>& notes) {
  const Index count = tensor.visit([](const auto& t) {
    const auto values = t.values();
    return static_cast<Index>(std::count_if(values.begin(), values.end(), [](auto value) {
      return !std::isfinite(convert_element<double>(value));
    }));
  });
  if (count == 0) return;
  notes.push_back(
      fmt::format("{}: {} of {} values are NaN or infinite", name, count, tensor.size()));
}

void note_zero_rows(Index empty_rows, Index overflowed_rows, std::vector<std::string>& notes,
                    std::string_view zeros) {
  if (empty_rows > 0) {
    const bool one = empty_rows == 1;
    notes.push_back(fmt::format("{} {} no key: {} {} are 0", empty_rows,
                                one ? "row has" : "rows have", one ? "its" : "their", zeros));
  }
  if (overflowed_rows > 0) {
    const bool one = overflowed_rows == 1;
    notes.push_back(fmt::format(
        "{} {} keys, but scores that are all -infinity (overflow, unless given so): {} {} are 0",
        overflowed_rows, one ? "row sees" : "rows see", one ? "its" : "their", zeros));
  }
}

template AttentionMatrices attention_matrices(AttentionResult<float>&, const HeadLayout&, DType);
template AttentionMatrices attention_matrices(AttentionResult<double>&, const HeadLayout&, DType);

}  // namespace attnlab
