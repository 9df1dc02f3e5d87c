#pragma once

#include <array>
#include <span>
#include <string_view>

#include "attnlab/core/describe.h"

namespace attnlab {

// How a file names and lays out the weights of a layer; auto recognises it by the names.
enum class ParamsLayout { automatic, attnlab, torch, bert, gpt2, llama };
template <>
inline constexpr std::array<std::string_view, 6> kChoiceNames<ParamsLayout> = {
    "auto", "attnlab", "torch", "bert", "gpt2", "llama"};

// Where one of our tensors is found in a file.
struct LayerPiece {
  std::string_view name;    // in the file, after the prefix
  bool transposed = false;  // the file has [out, in]
  Index part = 0;           // which of `parts` equal pieces of the output axis
  Index parts = 1;
};

// A layout: how its tensors are called behind what the layer's names begin with. To know another
// one is to add it to the table.
struct LayerLayout {
  ParamsLayout kind = ParamsLayout::automatic;
  LayerPiece w_q, w_k, w_v, w_o;
  // Absent from the layer when the file does not have them; nameless where no file of the layout
  // has.
  LayerPiece b_q, b_k, b_v, b_o;
  LayerPiece q_norm = {}, k_norm = {};
  LayerPiece bias_k = {}, bias_v = {};
  // Tensors that would change the result in ways that no MultiHeadParams has.
  std::array<std::string_view, 2> refused = {};
  // What the model does around these weights that is left to the user.
  std::string_view note = {};

  std::array<const LayerPiece*, 4> weights() const { return {&w_q, &w_k, &w_v, &w_o}; }
  std::array<const LayerPiece*, 6> biases() const {
    return {&b_q, &b_k, &b_v, &b_o, &bias_k, &bias_v};
  }
  std::array<const LayerPiece*, 2> norms() const { return {&q_norm, &k_norm}; }
  std::string_view name() const {
    return kChoiceNames<ParamsLayout>[static_cast<std::size_t>(kind)];
  }
};

// All layouts; one kind may have several.
std::span<const LayerLayout> layer_layouts();

}  // namespace attnlab
