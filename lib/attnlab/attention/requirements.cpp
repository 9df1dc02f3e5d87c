#include "attnlab/attention/requirements.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"

namespace attnlab {
namespace {

constexpr std::array<std::string_view, 5> kScoreMatrices = {"raw_scores", "scores", "capped_scores",
                                                            "masked_scores", "weights"};

void require_rank_4(std::string_view name, const Shape& shape) {
  if (shape.rank() == 4) return;
  throw InputError("", name, shape.str(), "need 4 axes, [batch, heads, length, width]");
}

void require_shapes(const Shape& q, const Shape& k, const Shape& v, const Mask& mask) {
  require_rank_4("q", q);
  require_rank_4("k", k);
  require_rank_4("v", v);
  require_same("k", k, "q", q, 0, "batch");
  require_same("v", v, "q", q, 0, "batch");
  require_same("k", k, "v", v, 1, "heads");
  require_same("k", k, "v", v, 2, "m");
  require_same("k", k, "q", q, 3, "d_k");
  if (q[3] == 0) throw InputError("", "q", q.str(), "need a d_k of at least 1");
  if (q[1] == 0) throw InputError("", "q", q.str(), "need at least 1 head");
  if (k[1] == 0 || q[1] % k[1] != 0) {
    throw InputError("", "q", fmt::format("{} heads", q[1]),
                     fmt::format("need a multiple of the {} heads of k and v", k[1]));
  }
  const Shape masked{mask.batch(), mask.heads(), mask.queries(), mask.keys()};
  const Shape scores{q[0], q[1], q[2], k[2]};
  if (masked != scores) {
    throw InputError("", "mask", masked.str(),
                     "need that of the scores, [batch, heads, n, m] = " + scores.str());
  }
}

void require_input(std::string_view name, const Shape& shape, std::string_view weight,
                   Index width) {
  if (shape.rank() != 3) {
    throw InputError("", name, shape.str(), "need 3 axes, [batch, length, width]");
  }
  if (shape[2] == width) return;
  throw InputError("", name, fmt::format("{} columns {}", shape[2], shape.str()),
                   fmt::format("need {}, the rows of {}", width, weight));
}

void require_past(std::string_view name, const Shape& past, Index batch, Index heads, Index width,
                  std::string_view width_name) {
  if (past.rank() == 4 && past == Shape{batch, heads, past[2], width}) return;
  throw InputError("", name, past.str(),
                   fmt::format("need [batch, kv_heads, p, {}] = [{}, {}, p, {}]", width_name, batch,
                               heads, width));
}

// The keys that the past holds.
template <class T>
Index past_keys(const Past<T>* past, const MultiHeadShape& layer, Index batch) {
  if (past == nullptr) return 0;
  const Shape &k = past->k.shape(), &v = past->v.shape();
  require_past("past_k", k, batch, layer.kv_heads, layer.d_k, "d_k");
  require_past("past_v", v, batch, layer.kv_heads, layer.d_v, "d_v");
  require_same("past_v", v, "past_k", k, 2, "p");
  return k[2];
}

template <class T>
void require_settings(const AttentionSettings& settings) {
  // Compared in double: a value beyond T must not become its infinity unseen.
  constexpr double kLargest = std::numeric_limits<T>::max();
  constexpr double kSmallest = std::numeric_limits<T>::denorm_min();
  constexpr std::string_view kType = std::is_same_v<T, float> ? "float32" : "float64";
  if (!(std::abs(settings.scale) <= kLargest)) {
    throw InputError("", "scale", fmt::format("{}", settings.scale),
                     fmt::format("need a number that is finite in {}", kType));
  }
  if (settings.softcap && !(*settings.softcap >= kSmallest && *settings.softcap <= kLargest)) {
    throw InputError("", "softcap", fmt::format("{}", *settings.softcap),
                     fmt::format("need a number above 0 that is finite in {}", kType));
  }
  if (!(settings.dropout >= 0 && settings.dropout < 1)) {
    throw InputError("", "dropout", fmt::format("{}", settings.dropout),
                     "need at least 0 and less than 1");
  }
}

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t bytes_of(std::initializer_list<Index> lengths, std::size_t element) {
  const std::vector<std::uint64_t> counts(lengths.begin(), lengths.end());
  return checked_bytes(counts, element).value_or(kMost);
}

// For the output and the matrices wanted.
void require_result_memory(const Mask& mask, Index d_v, std::size_t element, const Request& want) {
  const Index b = mask.batch(), h = mask.heads(), n = mask.queries(), m = mask.keys();
  std::string names;
  Index matrices = 0;
  for (const std::string_view name : kScoreMatrices) {
    if (!want.has(name)) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
    ++matrices;
  }
  const std::uint64_t output = bytes_of({b, h, n, d_v}, element);
  const std::uint64_t scores = bytes_of({matrices, b, h, n, m}, element);
  require_memory(output > kMost - scores ? kMost : output + scores,
                 names.empty() ? "output" : names);
}

}  // namespace

void require_same(std::string_view name, const Shape& shape, std::string_view other_name,
                  const Shape& other, int axis, std::string_view unit) {
  if (shape[axis] == other[axis]) return;
  throw InputError("", name, fmt::format("{} = {} in {}", unit, shape[axis], shape.str()),
                   fmt::format("need {} as in {} {}", other[axis], other_name, other.str()));
}

template <class T>
void require_attention(const Shape& q, const Shape& k, const Shape& v, const Mask& mask,
                       const AttentionSettings& settings, const Request& want) {
  require_shapes(q, k, v, mask);
  require_settings<T>(settings);
  require_result_memory(mask, v[3], sizeof(T), want);
}

template <class T>
void require_multi_head(const Shape& query, const Shape& key, const Shape& value,
                        const MultiHeadShape& layer, const Past<T>* past, const Mask& mask,
                        const AttentionSettings& settings, const Request& want) {
  require_input("query", query, "w_q", layer.d_query);
  require_input("key", key, "w_k", layer.d_key);
  require_input("value", value, "w_v", layer.d_value);
  require_same("key", key, "query", query, 0, "batch");
  require_same("value", value, "query", query, 0, "batch");
  require_same("value", value, "key", key, 1, "m");
  const Index batch = query[0], n = query[1], m = past_keys(past, layer, batch) + key[1];
  require_attention<T>({batch, layer.heads, n, layer.d_k}, {batch, layer.kv_heads, m, layer.d_k},
                       {batch, layer.kv_heads, m, layer.d_v}, mask, settings, want);
}

template void require_attention<float>(const Shape&, const Shape&, const Shape&, const Mask&,
                                       const AttentionSettings&, const Request&);
template void require_attention<double>(const Shape&, const Shape&, const Shape&, const Mask&,
                                        const AttentionSettings&, const Request&);

template void require_multi_head(const Shape&, const Shape&, const Shape&, const MultiHeadShape&,
                                 const Past<float>*, const Mask&, const AttentionSettings&,
                                 const Request&);
template void require_multi_head(const Shape&, const Shape&, const Shape&, const MultiHeadShape&,
                                 const Past<double>*, const Mask&, const AttentionSettings&,
                                 const Request&);

}  // namespace attnlab
