#include "attnlab/experiments/layer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "attnlab/core/error.h"
#include "attnlab/experiments/precision.h"

namespace attnlab {
namespace {

// Where one of our tensors is found in a file.
struct Piece {
  std::string_view name;    // in the file, after the prefix
  bool transposed = false;  // the file has [out, in]
  Index part = 0;           // which of `parts` equal pieces along the first axis
  Index parts = 1;
};

struct Layout {
  std::string_view name;
  ParamsLayout kind;
  Piece w_q, w_k, w_v, w_o;
  Piece b_q, b_k, b_v, b_o;  // absent from the layer when the file does not have them

  std::array<const Piece*, 4> weights() const { return {&w_q, &w_k, &w_v, &w_o}; }
  std::array<const Piece*, 4> biases() const { return {&b_q, &b_k, &b_v, &b_o}; }
};

constexpr std::array<Layout, 3> kLayouts = {{
    {.name = "attnlab",
     .kind = ParamsLayout::attnlab,
     .w_q = {"w_q"},
     .w_k = {"w_k"},
     .w_v = {"w_v"},
     .w_o = {"w_o"},
     .b_q = {"b_q"},
     .b_k = {"b_k"},
     .b_v = {"b_v"},
     .b_o = {"b_o"}},
    {.name = "torch",
     .kind = ParamsLayout::torch,
     .w_q = {"in_proj_weight", true, 0, 3},
     .w_k = {"in_proj_weight", true, 1, 3},
     .w_v = {"in_proj_weight", true, 2, 3},
     .w_o = {"out_proj.weight", true},
     .b_q = {"in_proj_bias", false, 0, 3},
     .b_k = {"in_proj_bias", false, 1, 3},
     .b_v = {"in_proj_bias", false, 2, 3},
     .b_o = {"out_proj.bias"}},
    // nn.MultiheadAttention with kdim or vdim keeps the three projections apart.
    {.name = "torch",
     .kind = ParamsLayout::torch,
     .w_q = {"q_proj_weight", true},
     .w_k = {"k_proj_weight", true},
     .w_v = {"v_proj_weight", true},
     .w_o = {"out_proj.weight", true},
     .b_q = {"in_proj_bias", false, 0, 3},
     .b_k = {"in_proj_bias", false, 1, 3},
     .b_v = {"in_proj_bias", false, 2, 3},
     .b_o = {"out_proj.bias"}},
}};

// [rows, columns] of `piece` in a tensor of the file, in our orientation.
template <class T>
Tensor<T> cut(const Tensor<T>& tensor, const Piece& piece, int rank, const std::string& path,
              const std::string& name) {
  const Shape& shape = tensor.shape();
  if (shape.rank() != rank) {
    throw InputError(path, name, shape.str(), fmt::format("need rank {}", rank));
  }
  if (shape[0] % piece.parts != 0) {
    throw InputError(
        path, name, shape.str(),
        fmt::format("the first axis must be a multiple of {}: queries, keys and values",
                    piece.parts));
  }
  const Index rows = shape[0] / piece.parts;
  const Index columns = rank == 2 ? shape[1] : 1;
  const ConstMatrixMap<T> part(tensor.data() + piece.part * rows * columns, rows, columns);
  Tensor<T> result = Tensor<T>::uninitialized(rank == 1          ? Shape{rows}
                                              : piece.transposed ? Shape{columns, rows}
                                                                 : Shape{rows, columns});
  if (piece.transposed) {
    result.matrix() = part.transpose();
  } else {
    std::copy_n(part.data(), part.size(), result.data());
  }
  return result;
}

std::optional<Index> heads_in(const SafetensorsFile& file, const char* key) {
  const auto& metadata = file.metadata();
  const auto entry = metadata.find(key);
  if (entry == metadata.end()) return std::nullopt;
  Index heads = 0;
  const auto [end, error] =
      std::from_chars(entry->second.data(), entry->second.data() + entry->second.size(), heads);
  if (error != std::errc() || end != entry->second.data() + entry->second.size() || heads < 1) {
    throw InputError(file.path(), std::string("__metadata__.") + key, entry->second,
                     "need a whole number of heads");
  }
  return heads;
}

bool holds(const SafetensorsFile& file, const Layout& layout, const std::string& prefix) {
  const auto pieces = layout.weights();
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece* piece) {
    return file.has(prefix + std::string(piece->name));
  });
}

// The layout the file holds a layer in. Throws InputError when there is none of the kind asked for.
std::size_t find_layout(const SafetensorsFile& file, ParamsLayout kind, const std::string& prefix) {
  std::string wanted;
  for (std::size_t i = 0; i < kLayouts.size(); ++i) {
    const Layout& layout = kLayouts[i];
    if (kind != ParamsLayout::automatic && kind != layout.kind) continue;
    if (holds(file, layout, prefix)) return i;
    if (!wanted.empty()) wanted += ", or ";
    wanted += fmt::format("{0}{1} {0}{2} ...", prefix, layout.w_q.name, layout.w_o.name);
  }
  std::string found;
  for (const TensorInfo& tensor : file.tensors()) found += (found.empty() ? "" : " ") + tensor.name;
  throw InputError(file.path(), "params", found.empty() ? "no tensors" : found,
                   fmt::format("need a layer of {} layout: {}",
                               kind == ParamsLayout::automatic
                                   ? "a known"
                                   : kChoiceNames<ParamsLayout>[static_cast<std::size_t>(kind)],
                               wanted));
}

}  // namespace

LayerFile::LayerFile(const std::string& path, ParamsLayout layout, std::string_view prefix,
                     std::vector<std::string>& notes)
    : path_(path), prefix_(prefix) {
  const SafetensorsFile file(path, "params");
  layout_ = find_layout(file, layout, prefix_);
  const auto read = [&](const Piece& piece) {
    const std::string name = prefix_ + std::string(piece.name);
    if (file.has(name) && !tensors_.contains(name)) tensors_.emplace(name, file.read(name, notes));
  };
  for (const Piece* piece : kLayouts[layout_].weights()) read(*piece);
  for (const Piece* piece : kLayouts[layout_].biases()) read(*piece);
  heads_ = heads_in(file, "heads");
  kv_heads_ = heads_in(file, "kv_heads");
}

std::string_view LayerFile::layout() const { return kLayouts[layout_].name; }

std::vector<DType> LayerFile::dtypes() const {
  std::vector<DType> dtypes;
  for (const auto& [name, tensor] : tensors_) dtypes.push_back(tensor.dtype());
  return dtypes;
}

void LayerFile::round_to(DType dtype, std::vector<std::string>& notes) {
  for (auto& [name, tensor] : tensors_) tensor = rounded_to(dtype, std::move(tensor), name, notes);
}

template <class T>
MultiHeadParams<T> LayerFile::params(Index heads, Index kv_heads) const {
  const Layout& layout = kLayouts[layout_];
  const auto weight = [&](const Piece& piece) {
    const std::string name = prefix_ + std::string(piece.name);
    return cut(tensors_.at(name).cast<T>(), piece, 2, path_, name);
  };
  const auto bias = [&](const Piece& piece) -> std::optional<Tensor<T>> {
    const std::string name = prefix_ + std::string(piece.name);
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return std::nullopt;
    return cut(found->second.cast<T>(), piece, 1, path_, name);
  };
  MultiHeadParams<T> params;
  params.heads = heads;
  params.kv_heads = kv_heads;
  params.w_q = weight(layout.w_q);
  params.w_k = weight(layout.w_k);
  params.w_v = weight(layout.w_v);
  params.w_o = weight(layout.w_o);
  params.b_q = bias(layout.b_q);
  params.b_k = bias(layout.b_k);
  params.b_v = bias(layout.b_v);
  params.b_o = bias(layout.b_o);
  return params;
}

template <class T>
LayerTensors layer_tensors(const MultiHeadParams<T>& params, DType dtype) {
  LayerTensors layer{{}, params.heads, params.kv_heads};
  const auto add = [&](const char* name, const Tensor<T>& tensor) {
    layer.tensors.push_back({name, AnyTensor(tensor).cast(dtype)});
  };
  const auto add_bias = [&](const char* name, const std::optional<Tensor<T>>& tensor) {
    if (tensor) add(name, *tensor);
  };
  add("w_q", params.w_q);
  add("w_k", params.w_k);
  add("w_v", params.w_v);
  add("w_o", params.w_o);
  add_bias("b_q", params.b_q);
  add_bias("b_k", params.b_k);
  add_bias("b_v", params.b_v);
  add_bias("b_o", params.b_o);
  return layer;
}

void write_layer(const std::string& path, const LayerTensors& layer, std::string_view field) {
  write_safetensors(
      path, layer.tensors, field,
      {{"heads", std::to_string(layer.heads)}, {"kv_heads", std::to_string(layer.kv_heads)}});
}

template <class T>
void round_params(MultiHeadParams<T>& params, DType dtype) {
  const auto round = [&](Tensor<T>& tensor) {
    tensor = AnyTensor(std::move(tensor)).cast(dtype).template cast<T>();
  };
  for (Tensor<T>* weight : {&params.w_q, &params.w_k, &params.w_v, &params.w_o}) round(*weight);
  for (auto* bias : {&params.b_q, &params.b_k, &params.b_v, &params.b_o}) {
    if (*bias) round(**bias);
  }
}

template MultiHeadParams<float> LayerFile::params(Index, Index) const;
template MultiHeadParams<double> LayerFile::params(Index, Index) const;
template LayerTensors layer_tensors(const MultiHeadParams<float>&, DType);
template LayerTensors layer_tensors(const MultiHeadParams<double>&, DType);
template void round_params(MultiHeadParams<float>&, DType);
template void round_params(MultiHeadParams<double>&, DType);

}  // namespace attnlab
