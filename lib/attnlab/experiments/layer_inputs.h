#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attnlab/attention/multi_head.h"
#include "attnlab/experiments/layer_options.h"

namespace attnlab {

// The sequences a layer is applied to, in the three forms they are given in: x alone (self
// attention), x and a memory (cross attention), or query, key and value apart.
struct LayerInputs {
  std::optional<AnyTensor> x, memory, query, key, value;

  const AnyTensor& queries() const { return x ? *x : *query; }
  const AnyTensor& keys() const { return memory ? *memory : x ? *x : *key; }
  const AnyTensor& values() const { return memory ? *memory : x ? *x : *value; }
};

// [n, d] as [1, n, d]; [batch, n, d] as it is.
template <class T>
Tensor<T> with_batch(const AnyTensor& tensor);

// Any of the inputs comes from the user; without one, all are drawn.
bool gives_layer_inputs(const LayerInputOptions& options);

// What errors and notes call the inputs and the options of their sizes.
struct LayerInputNames {
  std::string_view x = "x", memory = "memory", n = "n", m = "m", d_model = "d_model";
};

// Reads the inputs the options name. Every one has rank 2 or 3, the same for all. Throws
// InputError.
LayerInputs read_layer_inputs(const LayerInputOptions& options, const SizeOptions& sizes,
                              std::vector<std::string>& notes, const LayerInputNames& names = {});

// Rounds the inputs to `dtype`.
void round_inputs(LayerInputs& inputs, DType dtype, std::vector<std::string>& notes,
                  const LayerInputNames& names = {});

// A memory [.., 0, width] for `x`: of no positions.
AnyTensor without_rows(const AnyTensor& x, Index width);

// Throws InputError naming the input that is not as wide as the layer's weights need it.
void require_widths(const LayerInputs& inputs, const MultiHeadShape& shape);

// Draws x [n, d_query] and, when `cross`, a memory [m, d_key], with a batch axis before when one is
// asked for. Throws InputError.
LayerInputs draw_layer_inputs(const SizeOptions& sizes, Index d_query, Index d_key, bool cross,
                              std::uint64_t seed, std::vector<std::string>& notes,
                              const LayerInputNames& names = {});

}  // namespace attnlab
