#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "attnlab/experiments/layer_layouts.h"
#include "attnlab/io/tensor_archive.h"

namespace attnlab {

// Which layer of a file is meant.
struct LayerChoice {
  ParamsLayout layout = ParamsLayout::automatic;
  std::string_view prefix = {};  // what its names begin with
  std::optional<Index> number = std::nullopt;
};

// A layer in a file: its layout, and what stands before the layout's names.
struct FoundLayer {
  const LayerLayout* layout = nullptr;
  std::string prefix;
};

// The layer that has all weights of a layout behind some prefix, "" or one that ends in a dot. One
// whose prefix is the one chosen, dot or none, wins over those whose prefixes begin with it up to a
// dot; a chosen number must be the last number among the prefix's dots (h.11.). Throws InputError
// naming the candidates when there is none or more than one left, and when the layer has tensors
// that its layout refuses.
FoundLayer find_layer(const TensorArchive& file, const LayerChoice& choice);

}  // namespace attnlab
