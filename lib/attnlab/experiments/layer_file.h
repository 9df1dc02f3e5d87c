#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/attention/multi_head.h"
#include "attnlab/experiments/find_layer.h"
#include "attnlab/io/safetensors.h"

namespace attnlab {

// A multi-head layer in a .safetensors, .npz or .json file, in one of the layouts that
// layer_layouts() lists.
class LayerFile {
 public:
  // Finds and reads the layer, and says in `notes` which one it is. Throws InputError when the file
  // cannot be read or does not hold one layer of that choice.
  LayerFile(const std::string& path, const LayerChoice& choice, std::vector<std::string>& notes);

  // The dtypes of its tensors.
  std::vector<DType> dtypes() const;
  // The heads that the file says the layer has (attnlab files do).
  std::optional<Index> heads() const { return heads_; }
  // The key and value heads: those that the file says, or as many as the widths of w_q and w_k
  // leave room for when there are `heads` query heads.
  Index kv_heads(Index heads) const;
  // Whether the file says that the layer has a key and a value of zeros (attnlab files may).
  bool add_zero_attn() const { return add_zero_attn_; }

  // Rounds the tensors to `dtype`. What only that makes infinite is said in `notes`.
  void round_to(DType dtype, std::vector<std::string>& notes);

  // The layer in the attnlab layout. Throws InputError naming the tensor that does not fit.
  template <class T>
  MultiHeadParams<T> params(Index heads, Index kv_heads) const;

 private:
  std::string path_;
  FoundLayer layer_;
  std::map<std::string, AnyTensor> tensors_;  // as the file has them, by their names in it
  std::optional<Index> heads_, kv_heads_;
  bool add_zero_attn_ = false;
};

// A layer as a file in the attnlab layout holds it.
struct LayerTensors {
  std::vector<NamedTensor> tensors;
  Index heads = 1, kv_heads = 1;
  bool add_zero_attn = false;
};

template <class T>
LayerTensors layer_tensors(const MultiHeadParams<T>& params, DType dtype);

// Writes the layer, whole or not at all. Throws InputError naming `field`.
void write_layer(const std::string& path, const LayerTensors& layer, std::string_view field);

// Rounds all weights to `dtype`.
template <class T>
void round_params(MultiHeadParams<T>& params, DType dtype);

}  // namespace attnlab
