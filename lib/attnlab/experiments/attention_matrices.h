#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/core/describe.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/mask_options.h"
#include "attnlab/experiments/position_options.h"
#include "attnlab/experiments/score_options.h"

namespace attnlab {

// The [n, m] matrices of one attention, as a result names them, in the order they are computed.
struct AttentionMatrices {
  std::optional<AnyTensor> raw_scores, scores, capped_scores, masked_scores, weights;

  static constexpr auto fields() {
    using R = AttentionMatrices;
    return std::tuple(
        field("raw_scores", &R::raw_scores, "how well each query matches each key",
              {.formula = "q k^T", .shape = "[.., heads, n, m]"}),
        field("scores", &R::scores, "scaled, so that their variance does not grow with d_k",
              {.formula = "scale raw_scores", .shape = "[.., heads, n, m]"}),
        field("capped_scores", &R::capped_scores, "held within -C and C by the softcap",
              {.formula = "C tanh(scores / C)", .shape = "[.., heads, n, m]"}),
        field("masked_scores", &R::masked_scores, "-infinity where a query may not attend",
              {.formula = "mask(capped_scores)", .shape = "[.., heads, n, m]"}),
        field("weights", &R::weights, "how much of each value a query takes; every row sums to 1",
              {.formula = "softmax(masked_scores)", .shape = "[.., heads, n, m]"}));
  }
};

// The matrices that `from` kept, in the user's layout and rounded to `dtype`.
// Moves them out of `from`.
template <class T>
AttentionMatrices attention_matrices(AttentionResult<T>& from, const HeadLayout& layout,
                                     DType dtype);

// `want` without the steps that a calculation with these options does not take.
Request steps_taken(Request want, const ScoreOptions& scores, const MaskOptions& mask,
                    const PositionOptions& positions);

// "output: 3 of 20 values are NaN or infinite", when there are any.
void note_non_finite(std::string_view name, const AnyTensor& tensor,
                     std::vector<std::string>& notes);

// "1 row has no key: its weights and output are 0", when there are such rows; `zeros` is what is 0.
// Rows that see keys with scores of -infinity only are told apart.
void note_zero_rows(Index empty_rows, Index overflowed_rows, std::vector<std::string>& notes,
                    std::string_view zeros = "weights and output");

}  // namespace attnlab
