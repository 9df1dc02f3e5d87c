#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/random.h"
#include "attnlab/experiments/precision.h"

namespace attnlab {

// Heads, precision, and the sizes of tensors that are drawn.
struct SizeOptions {
  std::optional<Index> heads, kv_heads, batch, n, m, d_k, d_v;
  Precision dtype = Precision::automatic;

  static constexpr auto fields() {
    using O = SizeOptions;
    return std::tuple(
        field("heads", &O::heads,
              "query heads: files of rank 2 and 3 have their last axis split and the output comes "
              "back merged; when drawing, 1, or 2 in a layer, unless given",
              {.range = at_least<Index>(1)}),
        field("kv_heads", &O::kv_heads, "key and value heads, as many as query heads unless given",
              {.range = at_least<Index>(1)}),
        field("batch", &O::batch, "batch entries to draw", {.range = at_least<Index>(1)}),
        field("n", &O::n, "queries to draw, 5 unless given", {.range = at_least<Index>(0)}),
        field("m", &O::m, "keys to draw, as many as queries unless given",
              {.range = at_least<Index>(0)}),
        field(
            "d_k", &O::d_k,
            "width of a query and key head to draw, 8, or d_model / heads in a layer, unless given",
            {.range = at_least<Index>(1)}),
        field("d_v", &O::d_v, "width of a value head to draw, d_k unless given",
              {.range = at_least<Index>(1)}),
        field("dtype", &O::dtype,
              "precision; auto follows the files, text is float64, drawn tensors are float32; for "
              "16-bit types inputs are rounded, the rest is computed in float32 and rounded once"));
  }
};

// Throws InputError when the option was given and the tensor read has another size.
void require_size(std::string_view option, std::optional<Index> given, std::string_view tensor,
                  Index actual);

// Throws InputError naming `option` when its value does not divide that of `of`.
void require_divisor(std::string_view option, Index value, std::string_view of, Index whole);

// One axis of a tensor to be drawn or computed from it: how long, and the option that says so.
struct SizedAxis {
  std::string_view option;
  Index length = 0;
};
using SizedTensor = std::vector<SizedAxis>;

// Throws InputError naming the option of the longest axis when these tensors do not fit the memory
// together, all drawn in float32 and, for another precision, copied to it.
void require_drawing_memory(const std::vector<SizedTensor>& tensors, Precision precision);

// Standard normals from the seed. Throws InputError when there is not the memory for them.
AnyTensor draw_normal(const Shape& shape, std::uint64_t seed, Stream stream);

}  // namespace attnlab
