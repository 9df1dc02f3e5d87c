#include "attnlab/experiments/attention_variant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "attnlab/attention/kernel/dropout.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kBlockRows = 16;

double rounded(double value, Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::float16:
      return convert_element<double>(convert_element<Float16>(value));
    case Accumulator::bfloat16:
      return convert_element<double>(convert_element<BFloat16>(value));
    case Accumulator::float64:
      break;
  }
  return value;
}

// a b with every sum rounded as it grows.
Matrix<double> rounded_product(const Matrix<double>& a, const ConstMatrixMap<double>& b,
                               Accumulator accumulator) {
  Matrix<double> product(a.rows(), b.cols());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < b.cols(); ++j) {
      double sum = 0;
      for (Index x = 0; x < a.cols(); ++x) sum = rounded(sum + a(i, x) * b(x, j), accumulator);
      product(i, j) = sum;
    }
  }
  return product;
}

Mask mask_of(const AttentionVariant& variant) {
  MaskOptions options = variant.mask;
  const bool has_diagonal =
      options.causal.value_or(false) || options.window_left >= 0 || options.window_right >= 0;
  PositionOptions positions;
  positions.rope_theta = variant.positions.rope_theta;
  positions.alibi = !variant.positions.slopes.empty();
  // A diagonal that a mistake gave and another left without use.
  if (!has_diagonal && !positions.any()) options.offset.reset();
  std::vector<std::string> notes;
  return make_mask(options, positions, variant.batch(), variant.heads(), variant.queries(),
                   variant.keys(), variant.past, notes);
}

// Some rows of one head.
struct HeadRows {
  Matrix<double> scores;  // as the softmax takes them; hidden keys at -infinity or the fill
  Matrix<std::uint8_t> seen;
};

// Of every key, over the queries: the largest score, and the sum of the exponentials below it.
struct KeySums {
  std::vector<double> largest, sum;
};

class VariantRows {
 public:
  explicit VariantRows(const AttentionVariant& variant)
      : a_(variant),
        mask_(mask_of(variant)),
        q_(variant.q),
        k_(variant.k),
        finite_values_(all_finite(*variant.v)) {
    if (!a_.positions.rope_theta) return;
    q_ =
        std::make_shared<const Tensor<double>>(turned_queries(*a_.q, a_.positions, mask_, a_.past));
    k_ = std::make_shared<const Tensor<double>>(turned_keys(*a_.k, a_.positions, a_.past));
  }

  // The output of the block, for every head [rows, d_v].
  std::vector<Matrix<double>> output(const QueryBlock& block) {
    std::vector<HeadRows> heads = scores(block);
    if (a_.axis == SoftmaxAxis::queries) sum_keys(block.batch);
    std::vector<Matrix<double>> outputs;
    outputs.reserve(heads.size());
    for (Index h = 0; h < a_.heads(); ++h) {
      outputs.push_back(head_output(block, h, heads));
    }
    return outputs;
  }

 private:
  static bool all_finite(const Tensor<double>& tensor) {
    return std::all_of(tensor.values().begin(), tensor.values().end(),
                       [](double value) { return std::isfinite(value); });
  }

  ConstMatrixMap<double> keys_of(const Tensor<double>& tensor, Index b, Index h) const {
    const Index kv_heads = tensor.shape()[1];
    const Index shared = a_.tiled_heads ? h % kv_heads : h / (a_.heads() / kv_heads);
    return tensor.matrix(b * kv_heads + shared);
  }

  std::vector<HeadRows> scores(const QueryBlock& block) const {
    std::vector<HeadRows> heads;
    heads.reserve(static_cast<std::size_t>(a_.heads()));
    for (Index h = 0; h < a_.heads(); ++h) heads.push_back(head_scores(block, h));
    return heads;
  }

  HeadRows head_scores(const QueryBlock& block, Index h) const {
    const Index rows = block.last - block.first, m = a_.keys();
    const Matrix<double> q = q_->matrix(block.batch * a_.heads() + h).middleRows(block.first, rows);
    const ConstMatrixMap<double> k = keys_of(*k_, block.batch, h);
    HeadRows head;
    if (a_.accumulator == Accumulator::float64) {
      head.scores = q * k.transpose();
    } else {
      const Matrix<double> columns = k.transpose();
      head.scores =
          rounded_product(q, ConstMatrixMap<double>(columns.data(), columns.rows(), columns.cols()),
                          a_.accumulator);
    }
    head.seen.resize(rows, m);
    std::vector<double> bias(static_cast<std::size_t>(m));
    for (Index row = 0; row < rows; ++row) {
      const std::span<std::uint8_t> seen(head.seen.row(row).data(), static_cast<std::size_t>(m));
      read_mask(block.batch, h, block.first + row, seen, bias);
      for (Index j = 0; j < m; ++j) {
        const auto at = static_cast<std::size_t>(j);
        head.scores(row, j) =
            score(head.scores(row, j), bias[at], seen[at] == 0 && !a_.hides_after_softmax);
      }
    }
    return head;
  }

  void read_mask(Index b, Index h, Index i, std::span<std::uint8_t> seen,
                 std::span<double> bias) const {
    const Index m = a_.keys();
    std::fill(bias.begin(), bias.end(), 0.0);
    mask_.read_row<double>(b, h, i, {0, m}, seen, bias);
    add_variant_alibi(a_.positions, mask_, b, h, i, bias);
    const KeyRange range = mask_.key_range(b, i + a_.diagonal_shift);
    const bool padded = !a_.query_lengths.empty() && i >= query_length(b);
    for (Index j = 0; j < m; ++j) {
      std::uint8_t& one = seen[static_cast<std::size_t>(j)];
      if (j < range.first || j >= range.last) one = 0;
      if (a_.inverted) one = static_cast<std::uint8_t>(one == 0);
      if (padded || (a_.hides_past && j < a_.past)) one = 0;
    }
  }

  Index query_length(Index b) const {
    const auto& lengths = a_.query_lengths;
    return lengths.size() == 1 ? lengths[0] : lengths[static_cast<std::size_t>(b)];
  }

  double capped(double score) const { return *a_.softcap * std::tanh(score / *a_.softcap); }

  double score(double raw, double bias, bool hidden) const {
    // A bias of -infinity hides, whatever else is done to it.
    if (!std::isfinite(bias) && bias < 0) bias = 0;
    double score = a_.scale * (a_.scales_bias ? raw + bias : raw);
    if (a_.softcap && a_.softcap_place == SoftcapPlace::before_mask) score = capped(score);
    if (a_.softcap && a_.softcap_place == SoftcapPlace::before_scale) {
      score = a_.scale * capped(raw);
    }
    if (!a_.scales_bias) score += bias;
    if (hidden) score = a_.fill.value_or(-kInfinity);
    if (a_.softcap && a_.softcap_place == SoftcapPlace::after_mask) score = capped(score);
    return score * a_.exponent_factor;
  }

  void sum_keys(Index b) {
    if (summed_batch_ == b) return;
    summed_batch_ = b;
    const auto m = static_cast<std::size_t>(a_.keys());
    sums_.assign(static_cast<std::size_t>(a_.heads()),
                 {std::vector<double>(m, -kInfinity), std::vector<double>(m, 0.0)});
    for (Index first = 0; first < a_.queries(); first += kBlockRows) {
      const QueryBlock block{b, first, std::min(first + kBlockRows, a_.queries())};
      for (Index h = 0; h < a_.heads(); ++h) {
        add_rows(head_scores(block, h).scores, sums_[static_cast<std::size_t>(h)]);
      }
    }
  }

  static void add_rows(const Matrix<double>& scores, KeySums& sums) {
    for (Index row = 0; row < scores.rows(); ++row) {
      for (Index j = 0; j < scores.cols(); ++j) {
        const double score = scores(row, j);
        double &largest = sums.largest[static_cast<std::size_t>(j)],
               &sum = sums.sum[static_cast<std::size_t>(j)];
        if (score == -kInfinity) continue;
        if (score > largest) {
          sum *= std::exp(largest - score);
          largest = score;
        }
        sum += std::exp(score - largest);
      }
    }
  }

  static double weight(double score, double largest, double sum) {
    return score == -kInfinity ? 0 : std::exp(score - largest) / sum;
  }

  // The weights of a row; false when it has none.
  bool weigh(const std::vector<HeadRows>& heads, Index h, Index row, Eigen::RowVectorXd& weights) {
    const Matrix<double>& scores = heads[static_cast<std::size_t>(h)].scores;
    if (a_.axis == SoftmaxAxis::keys) return weigh_keys(scores, row, weights);
    for (Index j = 0; j < scores.cols(); ++j) {
      double largest = -kInfinity, sum = 0;
      if (a_.axis == SoftmaxAxis::queries) {
        const KeySums& sums = sums_[static_cast<std::size_t>(h)];
        largest = sums.largest[static_cast<std::size_t>(j)];
        sum = sums.sum[static_cast<std::size_t>(j)];
      } else {
        for (const HeadRows& head : heads) largest = std::max(largest, head.scores(row, j));
        for (const HeadRows& head : heads) sum += weight(head.scores(row, j), largest, 1);
      }
      weights[j] = weight(scores(row, j), largest, sum);
    }
    return true;
  }

  static bool weigh_keys(const Matrix<double>& scores, Index row, Eigen::RowVectorXd& weights) {
    double largest = -kInfinity, sum = 0;
    bool any = false;
    for (Index j = 0; j < scores.cols(); ++j) {
      largest = std::max(largest, scores(row, j));
      any = any || scores(row, j) != -kInfinity;
    }
    if (!any) return false;
    for (Index j = 0; j < scores.cols(); ++j) sum += weight(scores(row, j), largest, 1);
    for (Index j = 0; j < scores.cols(); ++j) weights[j] = weight(scores(row, j), largest, sum);
    return true;
  }

  Matrix<double> head_output(const QueryBlock& block, Index h, const std::vector<HeadRows>& heads) {
    const HeadRows& head = heads[static_cast<std::size_t>(h)];
    const ConstMatrixMap<double> v = keys_of(*a_.v, block.batch, h);
    Matrix<double> weights(head.scores.rows(), head.scores.cols());
    std::vector<Index> without_keys;
    Eigen::RowVectorXd row_weights(head.scores.cols());
    for (Index row = 0; row < weights.rows(); ++row) {
      if (!weigh(heads, h, row, row_weights)) {
        without_keys.push_back(row);
        row_weights.setZero();
      }
      weights.row(row) = row_weights;
      if (a_.hides_after_softmax) {
        for (Index j = 0; j < weights.cols(); ++j) {
          if (head.seen(row, j) == 0) weights(row, j) = 0;
        }
      }
      drop(block, h, row, weights);
    }
    Matrix<double> output = mixed(weights, head.seen, v);
    for (const Index row : without_keys) fill_empty(v, output, row);
    return output;
  }

  void drop(const QueryBlock& block, Index h, Index row, Matrix<double>& weights) const {
    if (a_.dropout == 0) return;
    const Index index = (block.batch * a_.heads() + h) * a_.queries() + block.first + row;
    drop_weights(std::span(weights.row(row).data(), static_cast<std::size_t>(weights.cols())), 0,
                 index, a_.dropout, a_.seed);
    if (!a_.dropout_rescales) weights.row(row) *= 1 - a_.dropout;
  }

  Matrix<double> mixed(const Matrix<double>& weights, const Matrix<std::uint8_t>& seen,
                       const ConstMatrixMap<double>& v) const {
    if (a_.accumulator != Accumulator::float64) return rounded_product(weights, v, a_.accumulator);
    if (finite_values_) return weights * v;
    // What lies under the mask never matters, NaN included.
    Matrix<double> output = Matrix<double>::Zero(weights.rows(), v.cols());
    for (Index row = 0; row < weights.rows(); ++row) {
      for (Index j = 0; j < v.rows(); ++j) {
        if (seen(row, j) != 0 || weights(row, j) != 0)
          output.row(row) += weights(row, j) * v.row(j);
      }
    }
    return output;
  }

  void fill_empty(const ConstMatrixMap<double>& v, Matrix<double>& output, Index row) const {
    if (a_.empty_rows == EmptyRows::nan) output.row(row).setConstant(std::nan(""));
    if (a_.empty_rows == EmptyRows::mean_of_values && v.rows() > 0) {
      output.row(row) = v.colwise().mean();
    }
  }

  const AttentionVariant& a_;
  Mask mask_;
  std::shared_ptr<const Tensor<double>> q_, k_;  // rotated where they are
  bool finite_values_;
  Index summed_batch_ = -1;
  std::vector<KeySums> sums_;  // of every head of that batch entry
};

// Where row i of head h lies in the other layout, counted over [heads, n].
Index place_in_other_layout(Index h, Index i, Index heads, Index n, bool packed) {
  if (!packed) return i * heads + h;
  const Index place = h * n + i;
  return place % heads * n + place / heads;
}

Index output_row(const AttentionVariant& variant, Index b, Index h, Index i) {
  const Index heads = variant.heads(), n = variant.queries(), start = b * heads * n;
  switch (variant.output_place) {
    case OutputPlace::other_layout:
      return start + place_in_other_layout(h, i, heads, n, variant.packed);
    case OutputPlace::swapped:
      return start + i * heads + h;
    case OutputPlace::same:
      break;
  }
  return start + h * n + i;
}

}  // namespace

double AttentionVariant::work() const {
  // exp, mask and the like cost about as much as 32 multiply-adds.
  constexpr double kSoftmaxWork = 32;
  double work = static_cast<double>(q->shape()[3] + v->shape()[3]) + kSoftmaxWork;
  for (const Index length : {batch(), heads(), queries(), keys()}) {
    work *= static_cast<double>(length);
  }
  return work;
}

Tensor<double> in_other_layout(const Tensor<double>& tensor, bool packed) {
  const Shape& shape = tensor.shape();
  const Index heads = shape[1], n = shape[2], d = shape[3];
  Tensor<double> result = Tensor<double>::uninitialized(shape);
  double* to = result.data();
  for (Index b = 0; b < shape[0]; ++b) {
    for (Index h = 0; h < heads; ++h) {
      for (Index i = 0; i < n; ++i, to += d) {
        const Index row = b * heads * n + place_in_other_layout(h, i, heads, n, packed);
        std::copy_n(tensor.data() + row * d, d, to);
      }
    }
  }
  return result;
}

Tensor<double> with_swapped_axes(const Tensor<double>& tensor) {
  const Shape& shape = tensor.shape();
  const Index heads = shape[1], n = shape[2], d = shape[3];
  Tensor<double> result = Tensor<double>::uninitialized({shape[0], n, heads, d});
  double* to = result.data();
  for (Index b = 0; b < shape[0]; ++b) {
    for (Index i = 0; i < n; ++i) {
      for (Index h = 0; h < heads; ++h, to += d) {
        std::copy_n(tensor.data() + ((b * heads + h) * n + i) * d, d, to);
      }
    }
  }
  return result;
}

std::vector<QueryBlock> row_blocks(const AttentionVariant& variant) {
  std::vector<QueryBlock> blocks;
  for (Index b = 0; b < variant.batch(); ++b) {
    for (Index first = 0; first < variant.queries(); first += kBlockRows) {
      blocks.push_back({b, first, std::min(first + kBlockRows, variant.queries())});
    }
  }
  return blocks;
}

bool visit_rows(const AttentionVariant& variant, std::span<const QueryBlock> blocks,
                const RowVisitor& visit) {
  VariantRows rows(variant);
  const auto d_v = static_cast<std::size_t>(variant.v->shape()[3]);
  for (const QueryBlock& block : blocks) {
    const std::vector<Matrix<double>> heads = rows.output(block);
    for (Index h = 0; h < variant.heads(); ++h) {
      const Matrix<double>& output = heads[static_cast<std::size_t>(h)];
      for (Index row = 0; row < output.rows(); ++row) {
        const Index place = output_row(variant, block.batch, h, block.first + row);
        if (!visit(place, {output.row(row).data(), d_v})) return false;
      }
    }
  }
  return true;
}

}  // namespace attnlab
