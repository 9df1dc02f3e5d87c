#include "attnlab/experiments/mask_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attnlab/attention/alibi.h"
#include "attnlab/core/error.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

// The source to blame for what a file holds.
std::string origin(const TensorSource& source) { return source.values ? "" : source.path; }

bool only_zeros_and_ones(const AnyTensor& tensor) {
  for (Index i = 0; i < tensor.size(); ++i) {
    if (tensor.at(i) != 0 && tensor.at(i) != 1) return false;
  }
  return true;
}

Tensor<bool> may_attend(const AnyTensor& values, MaskKind kind, const TensorSource& source) {
  if (!only_zeros_and_ones(values)) {
    throw InputError(origin(source), "mask", "numbers other than 0 and 1",
                     fmt::format("mask kind {} needs booleans or 0 and 1; numbers to be added are "
                                 "of kind add",
                                 kind == MaskKind::attend ? "attend" : "ignore"));
  }
  Tensor<bool> seen = values.cast<bool>();
  if (kind == MaskKind::ignore) {
    for (bool& value : seen.values()) value = !value;
  }
  return seen;
}

void add_mask_file(Mask& mask, const MaskOptions& options, std::vector<std::string>& notes) {
  if (options.mask.empty()) {
    if (options.mask_kind == MaskKind::automatic) return;
    throw InputError("", "mask_kind",
                     kChoiceNames<MaskKind>[static_cast<std::size_t>(options.mask_kind)],
                     "needs a mask");
  }
  AnyTensor values = read_tensor(options.mask, "mask", notes);
  if (options.mask_kind == MaskKind::attend || options.mask_kind == MaskKind::ignore) {
    const bool attend = options.mask_kind == MaskKind::attend;
    notes.push_back(fmt::format("mask: true (1) {} attend", attend ? "may" : "may not"));
    mask.set_boolean(may_attend(values, options.mask_kind, options.mask));
    return;
  }
  if (values.dtype() == DType::boolean) {
    throw InputError(origin(options.mask), "mask", "booleans",
                     "need their polarity named: --mask-kind attend (true may attend) or ignore "
                     "(true may not)");
  }
  if (values.size() > 0 && only_zeros_and_ones(values)) {
    notes.emplace_back(
        "mask: holds only 0 and 1 and was added to the scores; if it was meant as a boolean mask, "
        "give --mask-kind attend or ignore");
  }
  mask.set_additive(std::move(values));
}

std::vector<Index> read_key_lengths(const TensorSource& source, Index keys,
                                    std::vector<std::string>& notes) {
  const AnyTensor values = read_tensor(source, "key_lengths", notes);
  std::vector<Index> lengths;
  for (Index i = 0; i < values.size(); ++i) {
    const double length = values.at(i);
    if (length != std::floor(length) || !(length >= 0) || length > static_cast<double>(keys)) {
      throw InputError(origin(source), "key_lengths", fmt::format("{}", length),
                       fmt::format("need a whole number from 0 to {}, the keys there are", keys));
    }
    lengths.push_back(static_cast<Index>(length));
  }
  return lengths;
}

void set_diagonal(Mask& mask, const MaskOptions& options, const PositionOptions& positions,
                  const std::vector<Index>& lengths, Index past, std::vector<std::string>& notes) {
  const Index n = mask.queries(), m = mask.keys();
  if (options.offset && options.align != Align::automatic) {
    throw InputError("", "offset", fmt::format("{}", *options.offset),
                     "give either an offset or an alignment");
  }
  const bool used = options.causal.value_or(false) || options.window_left >= 0 ||
                    options.window_right >= 0 || positions.any();
  if (options.offset && !used) {
    throw InputError(
        "", "offset", fmt::format("{}", *options.offset),
        "needs causal or a window, which it is the diagonal of, or rope_theta or alibi");
  }
  std::vector<Index> offsets;
  std::string name;
  if (options.offset) {
    offsets = {*options.offset};
    name = fmt::format("at offset {}", *options.offset);
  } else if (options.align == Align::bottom_right) {
    name = "bottom-right";
    if (lengths.empty()) offsets = {m - n};
    for (const Index length : lengths) offsets.push_back(length - n);
  } else if (options.align == Align::automatic && past > 0) {
    offsets = {past};
    name = fmt::format("after the {} past {}", past, past == 1 ? "key" : "keys");
  } else {
    offsets = {0};
    name = "top-left";
  }
  if (used && n != m) {
    const Index first = offsets[0];
    notes.push_back(fmt::format("mask: {} {} and {} {} are aligned {}: query 0 stands at key {}{}",
                                n, n == 1 ? "query" : "queries", m, m == 1 ? "key" : "keys", name,
                                first, offsets.size() > 1 ? " in the first batch entry" : ""));
  }
  mask.set_offsets(std::move(offsets));
}

}  // namespace

Mask make_mask(const MaskOptions& options, const PositionOptions& positions, Index batch,
               Index heads, Index queries, Index keys, Index past,
               std::vector<std::string>& notes) {
  Mask mask(batch, heads, queries, keys);
  std::vector<Index> lengths;
  if (!options.key_lengths.empty()) {
    lengths = read_key_lengths(options.key_lengths, keys, notes);
    mask.set_key_lengths(lengths);
  }
  set_diagonal(mask, options, positions, lengths, past, notes);
  if (options.causal.value_or(false)) mask.set_causal();
  if (options.window_left >= 0 || options.window_right >= 0) {
    mask.set_window(options.window_left, options.window_right);
  }
  if (positions.alibi) mask.set_alibi(alibi_slopes(heads));
  add_mask_file(mask, options, notes);
  return mask;
}

}  // namespace attnlab
