#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attnlab/core/tensor.h"
#include "attnlab/experiments/mask_options.h"
#include "attnlab/experiments/variant_positions.h"

namespace attnlab {

enum class SoftmaxAxis { keys, queries, heads };
enum class EmptyRows { zero, mean_of_values, nan };
enum class SoftcapPlace { before_mask, after_mask, before_scale };
enum class Accumulator { float64, float16, bfloat16 };
// Where row (h, i) of what was computed lies in the output [batch, heads, n, d_v]: at (h, i); where
// the memory of the user's layout has it when written in the other ([n, heads] for [heads, n], or
// the reverse for packed heads); or at (i, h).
enum class OutputPlace { same, other_layout, swapped };

// Attention as somebody may have written it: the inputs, and every choice that a mistake may
// change. The defaults are what softmax(scale Q K^T) V means in scaled_dot_product.
struct AttentionVariant {
  std::shared_ptr<const Tensor<double>> q, k, v;  // [batch, heads, n, d], the past put before
  bool packed = false;                            // the user's heads lie in the last axis
  Index past = 0;
  VariantPositions positions;

  double scale = 1;
  double exponent_factor = 1;  // on what the softmax takes the exponential of
  std::optional<double> softcap;
  SoftcapPlace softcap_place = SoftcapPlace::before_mask;

  MaskOptions mask;  // files already read
  Index diagonal_shift = 0;
  bool inverted = false;  // what is hidden is seen, and the reverse
  bool hides_past = false;
  std::vector<Index> query_lengths;  // rows from there on see nothing
  bool scales_bias = false;
  std::optional<double> fill;        // the score of hidden keys instead of -infinity
  bool hides_after_softmax = false;  // weights set to 0, the others left as they are

  SoftmaxAxis axis = SoftmaxAxis::keys;
  EmptyRows empty_rows = EmptyRows::zero;
  bool tiled_heads = false;  // query head h uses key/value head h % kv_heads
  double dropout = 0;
  std::uint64_t seed = 0;
  bool dropout_rescales = true;
  Accumulator accumulator = Accumulator::float64;
  OutputPlace output_place = OutputPlace::same;

  Index batch() const { return q->shape()[0]; }
  Index heads() const { return q->shape()[1]; }
  Index queries() const { return q->shape()[2]; }
  Index keys() const { return k->shape()[2]; }
  // Multiply-adds and what else an entry of the scores costs, in all.
  double work() const;
};

// Row i of `tensor` [batch, heads, n, d] where the other layout has it: its memory, heads in the
// last axis where `packed` and before the rows where not, read the other way.
Tensor<double> in_other_layout(const Tensor<double>& tensor, bool packed);
// [batch, n, heads, d]
Tensor<double> with_swapped_axes(const Tensor<double>& tensor);

// Queries [first, last) of all heads of a batch entry.
struct QueryBlock {
  Index batch = 0, first = 0, last = 0;
};

// All rows of the variant, in blocks of a few queries.
std::vector<QueryBlock> row_blocks(const AttentionVariant& variant);

// Is told a row of the output, counted over [batch, heads, n], and its d_v values; false stops.
using RowVisitor = std::function<bool(Index row, std::span<const double> values)>;

// Computes those rows in float64 by plain loops, one block after the other. Memory: heads times a
// block times m. Returns false when stopped.
bool visit_rows(const AttentionVariant& variant, std::span<const QueryBlock> blocks,
                const RowVisitor& visit);

}  // namespace attnlab
