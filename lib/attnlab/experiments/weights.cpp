#include "attnlab/experiments/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/core/error.h"
#include "attnlab/experiments/through_layer.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

bool uses_layer(const WeightsOptions& options) {
  return names_a_layer(options) || options.projections;
}

// softmax(mask(scale q k^T)) as attend computes it; the values do not matter to it.
WeightsResult from_query_key(const WeightsOptions& options) {
  WeightsResult result;
  const SizeOptions& sizes = options.sizes;
  RawAttentionInputs raw = read_query_key(options.query_key, sizes, options.run.seed, result.notes);
  const DType dtype = raw.dtype;
  const HeadLayout layout = raw.layout;
  visit_compute_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AttentionInputs<T> inputs = split_attention_inputs<T>(sizes, std::move(raw));
    const Shape &q = inputs.q.shape(), &k = inputs.k.shape();
    const Mask mask = make_mask(options.mask, options.positions, q[0], q[1], q[2], k[2],
                                /*past=*/0, result.notes);
    rotate_inputs(inputs, options.positions, mask, options.run.threads);
    const AttentionSettings settings = attention_settings(options.scores, options.run, q[3]);
    AttentionResult<T> attention =
        scaled_dot_product(inputs.q, inputs.k, inputs.v, mask, settings, {"weights"});
    note_zero_rows(attention.empty_rows, attention.overflowed_rows, result.notes, "weights");
    result.weights = attention_matrices(attention, layout, dtype).weights;
  });
  note_non_finite("weights", *result.weights, result.notes);
  return result;
}

void check_use(const WeightsOptions& options) {
  if (!options.weights.empty()) {
    constexpr std::string_view kRule =
        "is for weights that are computed; these are given, as they are";
    require_defaults(options.layer, kRule);
    require_defaults(options.sizes, kRule);
    require_defaults(options.positions, kRule);
    require_defaults(options.scores, kRule);
    require_defaults(options.mask, kRule);
  } else if (!uses_layer(options)) {
    require_defaults(options.layer,
                     "is for weights of a layer: give its input x, params or d_model too");
    if (options.sizes.d_v) {
      throw InputError("", "d_v", std::to_string(*options.sizes.d_v),
                       "is for values, which weights do not need");
    }
  }
  if (!options.projections) return;
  constexpr std::string_view kRule = "is for attention weights, not for projections";
  if (options.head) throw InputError("", "head", std::to_string(*options.head), kRule);
  if (options.average) throw InputError("", "average", "true", kRule);
  if (options.top) throw InputError("", "top", std::to_string(*options.top), kRule);
  require_defaults(options.positions, kRule);
  require_defaults(options.scores, kRule);
  require_defaults(options.mask, kRule);
}

void require_one_source(const WeightsOptions& options) {
  const bool given = !options.weights.empty();
  const bool query_key = !options.query_key.q.empty() || !options.query_key.k.empty();
  const bool layer = uses_layer(options);
  if (given && (query_key || layer)) {
    throw InputError("", "weights", options.weights.path,
                     "give either a weight matrix or what to compute it from");
  }
  if (query_key && layer) {
    throw InputError("", "q", options.query_key.q.path,
                     "give either q and k or the inputs of a layer");
  }
}

// [heads, n, m] of one batch entry, or [batch, heads, n, m], reduced to what was asked for.
AnyTensor choose_heads(AnyTensor all, const WeightsOptions& options) {
  if (!options.head && !options.average) return all;
  const Shape shape = all.shape();
  if (options.head && options.average) {
    throw InputError("", "head", std::to_string(*options.head),
                     "give either a head or the average");
  }
  const Index heads = shape.rank() > 2 ? shape[-3] : 1;
  if (options.head && *options.head >= heads) {
    throw InputError("", "head", std::to_string(*options.head),
                     fmt::format("there are {}, counted from 0", heads));
  }
  if (shape.rank() == 2) return all;
  const Index batch = shape.rank() == 4 ? shape[0] : 1;
  const Tensor<double> from = all.cast<double>();
  Tensor<double> to(Shape{batch, shape[-2], shape[-1]});
  for (Index b = 0; b < batch; ++b) {
    if (options.head) {
      to.matrix(b) = from.matrix(b * heads + *options.head);
    } else {
      for (Index h = 0; h < heads; ++h) to.matrix(b) += from.matrix(b * heads + h);
      to.matrix(b) /= static_cast<double>(heads);
    }
  }
  const Shape result =
      shape.rank() == 4 ? Shape{batch, 1, shape[-2], shape[-1]} : Shape{shape[-2], shape[-1]};
  return AnyTensor(std::move(to).reshaped(result)).cast(all.dtype());
}

// NaN wherever one stands in the row; std::max_element would find it or not.
double largest(std::span<const double> row) {
  double max = row.empty() ? 0 : row[0];
  for (const double weight : row) {
    if (std::isnan(weight)) return weight;
    max = std::max(max, weight);
  }
  return max;
}

WeightsRow describe_row(std::span<const double> row, Index top) {
  WeightsRow result;
  result.sum = std::accumulate(row.begin(), row.end(), 0.0);
  result.max = largest(row);
  const bool distribution =
      result.sum > 0 && std::isfinite(result.sum) &&
      std::all_of(row.begin(), row.end(), [](double weight) { return weight >= 0; });
  if (distribution) {
    double entropy = 0, squares = 0;
    for (const double weight : row) {
      const double p = weight / result.sum;
      if (p > 0) entropy -= p * std::log(p);
      squares += p * p;
    }
    result.entropy = entropy;
    result.effective_keys = 1 / squares;
  }
  std::vector<Index> order(row.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(top), row.size());
  // NaN sorts last; equal weights keep the order of the keys.
  const auto heavier = [&](Index a, Index b) {
    const double x = row[static_cast<std::size_t>(a)], y = row[static_cast<std::size_t>(b)];
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
    return x != y ? x > y : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    heavier);
  for (std::size_t i = 0; i < count; ++i) {
    result.top_keys.push_back(order[i]);
    result.top_weights.push_back(row[static_cast<std::size_t>(order[i])]);
  }
  return result;
}

std::vector<WeightsRow> describe_rows(const AnyTensor& all, Index top) {
  const Tensor<double> values = all.cast<double>();
  const Shape& shape = values.shape();
  const Index heads = shape.rank() > 2 ? shape[-3] : 1;
  std::vector<WeightsRow> rows;
  for (Index matrix = 0; matrix < shape.matrices(); ++matrix) {
    for (Index i = 0; i < shape[-2]; ++i) {
      const double* first = values.matrix(matrix).data() + i * shape[-1];
      WeightsRow row = describe_row({first, static_cast<std::size_t>(shape[-1])}, top);
      if (shape.rank() == 4) row.batch = matrix / heads;
      if (shape.rank() > 2) row.head = matrix % heads;
      row.row = i;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

WeightsResult weights(const WeightsOptions& options, const Request& /*want*/) {
  require_one_source(options);
  check_use(options);
  WeightsResult result;
  if (uses_layer(options)) {
    MultiheadResult layer =
        multihead(through_layer(options), {"weights", "w_q", "w_k", "w_v", "w_o"});
    result.notes = std::move(layer.notes);
    result.layer = std::move(layer.layer);
    if (options.projections) {
      result.w_q = std::move(layer.w_q);
      result.w_k = std::move(layer.w_k);
      result.w_v = std::move(layer.w_v);
      result.w_o = std::move(layer.w_o);
      return result;
    }
    result.weights = std::move(layer.attention.weights);
  } else if (options.weights.empty()) {
    result = from_query_key(options);
  } else {
    result.weights = read_tensor(options.weights, "weights", result.notes);
    if (result.weights->shape().rank() < 2) {
      throw InputError(options.weights.path, "weights", result.weights->shape().str(),
                       "need a matrix [n, m] or a stack of them, rank 2 to 4");
    }
  }
  result.weights = choose_heads(std::move(*result.weights), options);
  result.rows = describe_rows(*result.weights, options.top.value_or(0));
  return result;
}

}  // namespace attnlab
