#include "attnlab/experiments/layer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/precision.h"
#include "attnlab/io/tensor_archive.h"
#include "attnlab/io/tensor_format.h"

namespace attnlab {
namespace {

// `piece` of a tensor of the file, in our orientation.
template <class T>
Tensor<T> cut(const Tensor<T>& tensor, const LayerPiece& piece, int rank, const std::string& path,
              const std::string& name) {
  const Shape& shape = tensor.shape();
  if (shape.rank() != rank) {
    throw InputError(path, name, shape.str(), fmt::format("need rank {}", rank));
  }
  const bool first = rank == 1 || piece.transposed;
  const Index outputs = shape[first ? 0 : 1];
  if (outputs % piece.parts != 0) {
    throw InputError(path, name, shape.str(),
                     fmt::format("the {} axis must be a multiple of {}: queries, keys and values",
                                 first ? "first" : "second", piece.parts));
  }
  const Index size = outputs / piece.parts;
  if (rank == 1) {
    Tensor<T> result = Tensor<T>::uninitialized({size});
    std::copy_n(tensor.data() + piece.part * size, size, result.data());
    return result;
  }
  const ConstMatrixMap<T> all(tensor.data(), shape[0], shape[1]);
  Tensor<T> result = Tensor<T>::uninitialized({shape[piece.transposed ? 1 : 0], size});
  if (piece.transposed) {
    result.matrix() = all.middleRows(piece.part * size, size).transpose();
  } else {
    result.matrix() = all.middleCols(piece.part * size, size);
  }
  return result;
}

std::optional<Index> heads_in(const TensorArchive& file, const char* key) {
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

// bias_k or bias_v, which torch keeps as [1, 1, width].
template <class T>
Tensor<T> own_key(Tensor<T> tensor, const std::string& path, const std::string& name) {
  const Shape shape = tensor.shape();
  if (shape != Shape{shape.size()} && shape != Shape{1, 1, shape.size()}) {
    throw InputError(path, name, shape.str(), "need [width] or [1, 1, width]");
  }
  return std::move(tensor).reshaped({shape.size()});
}

bool says_true(const TensorArchive& file, const char* key) {
  const auto entry = file.metadata().find(key);
  if (entry == file.metadata().end() || entry->second == "false") return false;
  if (entry->second == "true") return true;
  throw InputError(file.path(), std::string("__metadata__.") + key, entry->second,
                   "need true or false");
}

// By the name, or where that says nothing the first bytes.
std::unique_ptr<TensorArchive> open_layer(const std::string& path) {
  InputFile file(path, "params");
  const TensorFormat format =
      format_of_name(path) ? *format_of_name(path) : format_of_content(file);
  return open_archive(std::move(file), format);
}

}  // namespace

LayerFile::LayerFile(const std::string& path, const LayerChoice& choice,
                     std::vector<std::string>& notes)
    : path_(path) {
  const std::unique_ptr<TensorArchive> file = open_layer(path);
  layer_ = find_layer(*file, choice);
  notes.push_back(fmt::format(
      "the layer is in the {} layout{}", layer_.layout->name(),
      layer_.prefix.empty() ? "" : ", its names beginning with " + printable(layer_.prefix)));
  if (!layer_.layout->note.empty()) notes.emplace_back(layer_.layout->note);
  const auto read = [&](const LayerPiece& piece) {
    if (piece.name.empty()) return;
    const std::string name = layer_.prefix + std::string(piece.name);
    if (!tensors_.contains(name) && file->has(name)) {
      tensors_.emplace(name, file->read(name, notes));
    }
  };
  for (const LayerPiece* piece : layer_.layout->weights()) read(*piece);
  for (const LayerPiece* piece : layer_.layout->biases()) read(*piece);
  for (const LayerPiece* piece : layer_.layout->norms()) read(*piece);
  heads_ = heads_in(*file, "heads");
  kv_heads_ = heads_in(*file, "kv_heads");
  add_zero_attn_ = says_true(*file, "add_zero_attn");
}

Index LayerFile::kv_heads(Index heads) const {
  if (kv_heads_) return *kv_heads_;
  const auto width = [&](const LayerPiece& piece) {
    const Shape& shape = tensors_.at(layer_.prefix + std::string(piece.name)).shape();
    return shape.rank() == 2 ? shape[piece.transposed ? 0 : 1] / piece.parts : 0;
  };
  const Index d_k = width(layer_.layout->w_q) / heads;
  const Index keys = width(layer_.layout->w_k);
  return d_k > 0 && keys > 0 && keys % d_k == 0 ? keys / d_k : heads;
}

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
  const LayerLayout& layout = *layer_.layout;
  const auto weight = [&](const LayerPiece& piece) {
    const std::string name = layer_.prefix + std::string(piece.name);
    return cut(tensors_.at(name).cast<T>(), piece, 2, path_, name);
  };
  const auto bias = [&](const LayerPiece& piece) -> std::optional<Tensor<T>> {
    const std::string name = layer_.prefix + std::string(piece.name);
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
  params.q_norm = bias(layout.q_norm);
  params.k_norm = bias(layout.k_norm);
  const auto own = [&](const LayerPiece& piece) -> std::optional<Tensor<T>> {
    const std::string name = layer_.prefix + std::string(piece.name);
    const auto found = tensors_.find(name);
    if (piece.name.empty() || found == tensors_.end()) return std::nullopt;
    return own_key(found->second.cast<T>(), path_, name);
  };
  params.bias_k = own(layout.bias_k);
  params.bias_v = own(layout.bias_v);
  return params;
}

template <class T>
LayerTensors layer_tensors(const MultiHeadParams<T>& params, DType dtype) {
  LayerTensors layer{{}, params.heads, params.kv_heads, params.add_zero_attn};
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
  add_bias("q_norm", params.q_norm);
  add_bias("k_norm", params.k_norm);
  add_bias("bias_k", params.bias_k);
  add_bias("bias_v", params.bias_v);
  return layer;
}

void write_layer(const std::string& path, const LayerTensors& layer, std::string_view field) {
  std::map<std::string, std::string> metadata = {{"heads", std::to_string(layer.heads)},
                                                 {"kv_heads", std::to_string(layer.kv_heads)}};
  if (layer.add_zero_attn) metadata.emplace("add_zero_attn", "true");
  write_safetensors(path, layer.tensors, field, metadata);
}

template <class T>
void round_params(MultiHeadParams<T>& params, DType dtype) {
  const auto round = [&](Tensor<T>& tensor) {
    tensor = AnyTensor(std::move(tensor)).cast(dtype).template cast<T>();
  };
  for (Tensor<T>* weight : {&params.w_q, &params.w_k, &params.w_v, &params.w_o}) round(*weight);
  for (auto* bias : {&params.b_q, &params.b_k, &params.b_v, &params.b_o, &params.q_norm,
                     &params.k_norm, &params.bias_k, &params.bias_v}) {
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
