#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/attention/multi_head.h"
#include "attnlab/core/describe.h"
#include "attnlab/io/safetensors.h"

namespace attnlab {

// How a file names and lays out the weights of a layer; auto recognises it by the names.
enum class ParamsLayout { automatic, attnlab, torch };
template <>
inline constexpr std::array<std::string_view, 3> kChoiceNames<ParamsLayout> = {"auto", "attnlab",
                                                                               "torch"};

// A multi-head layer in a .safetensors file.
//   attnlab: w_q w_k w_v w_o [in, out], b_q b_k b_v b_o
//   torch:   nn.MultiheadAttention's in_proj_weight [3 d_model, d_model] or q/k/v_proj_weight
//            [out, in], in_proj_bias, out_proj.weight, out_proj.bias
class LayerFile {
 public:
  // Reads the layer among the names that start with `prefix`. Throws InputError when the file
  // cannot be read or holds no layer of that layout.
  LayerFile(const std::string& path, ParamsLayout layout, std::string_view prefix,
            std::vector<std::string>& notes);

  // "torch", what was found.
  std::string_view layout() const;
  // The dtypes of its tensors.
  std::vector<DType> dtypes() const;
  // The heads that the file says the layer has (attnlab files do).
  std::optional<Index> heads() const { return heads_; }
  std::optional<Index> kv_heads() const { return kv_heads_; }

  // Rounds the tensors to `dtype`. What only that makes infinite is said in `notes`.
  void round_to(DType dtype, std::vector<std::string>& notes);

  // The layer in the attnlab layout. Throws InputError naming the tensor that does not fit.
  template <class T>
  MultiHeadParams<T> params(Index heads, Index kv_heads) const;

 private:
  std::string path_;
  std::string prefix_;
  std::size_t layout_ = 0;                    // index into the table of layouts
  std::map<std::string, AnyTensor> tensors_;  // as the file has them, by their names in it
  std::optional<Index> heads_, kv_heads_;
};

// A layer as a file in the attnlab layout holds it.
struct LayerTensors {
  std::vector<NamedTensor> tensors;
  Index heads = 1, kv_heads = 1;
};

template <class T>
LayerTensors layer_tensors(const MultiHeadParams<T>& params, DType dtype);

// Writes the layer, whole or not at all. Throws InputError naming `field`.
void write_layer(const std::string& path, const LayerTensors& layer, std::string_view field);

// Rounds all weights to `dtype`.
template <class T>
void round_params(MultiHeadParams<T>& params, DType dtype);

}  // namespace attnlab
