#include "attnlab/experiments/given_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attnlab/core/error.h"
#include "attnlab/experiments/index_text.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

// The coarsest type that holds every weight: 16-bit weights also come as float32 and as text.
DType coarsest(const AnyTensor& weights) {
  bool float16 = true, bfloat16 = true;
  for (Index i = 0; (float16 || bfloat16) && i < weights.size(); ++i) {
    const double weight = weights.at(i);
    const auto single = static_cast<float>(weight);
    float16 = float16 && static_cast<double>(static_cast<Float16>(single)) == weight;
    bfloat16 = bfloat16 && static_cast<double>(static_cast<BFloat16>(single)) == weight;
  }
  // The coarser first: of numbers that are neither large nor small, float16 holds all of it.
  if (bfloat16) return DType::bfloat16;
  return float16 ? DType::float16 : weights.dtype();
}

// Rounding m weights moves their sum by at most half an epsilon of 1 and m halves of the smallest
// number; what float32 sums on the way adds more than that of float64 itself.
double sum_tolerance(DType dtype) {
  if (dtype == DType::float16) return 4e-3;
  if (dtype == DType::bfloat16) return 1e-2;
  return 1e-4;
}

// Weights below it stand close to where their neighbours have become 0. Text and float64 files
// often hold what was computed in float32.
double near_underflow(DType dtype) { return dtype == DType::float16 ? 1e-6 : 1e-30; }

}  // namespace

GivenWeights::GivenWeights(const TensorSource& source, std::vector<std::string>& notes)
    : path_(source.path),
      tensor_(read_tensor(source, "weights", notes)),
      dtype_(coarsest(tensor_)) {
  const Shape& shape = tensor_.shape();
  if (shape.rank() < 2) {
    throw InputError(path_, "weights", shape.str(),
                     "need a matrix [n, m] or a stack of them, rank 2 to 4");
  }
  if (shape.size() == 0) {
    throw InputError(path_, "weights", shape.str(), "need a row and a key at least");
  }
  if (shape.rank() > 2) heads_ = shape[-3];
  if (shape.rank() > 3) batch_ = shape[0];
  check_rows(notes);
  require_rows();
}

void GivenWeights::seen_logits(Index batch, Index head, Index i,
                               std::vector<double>& logits) const {
  read_row((batch * heads_ + head) * queries() + i, logits);
  std::erase(logits, 0.0);
  for (double& logit : logits) logit = std::log(logit);
}

void GivenWeights::read_row(Index row, std::vector<double>& weights) const {
  weights.resize(static_cast<std::size_t>(keys()));
  tensor_.visit([&](const auto& tensor) {
    const auto* first = tensor.data() + row * keys();
    std::transform(first, first + keys(), weights.begin(),
                   [](auto weight) { return convert_element<double>(weight); });
  });
}

GivenWeights::RowSum GivenWeights::add_up(Index row, std::vector<double>& weights) const {
  read_row(row, weights);
  RowSum result;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const double weight = weights[j];
    if (!(weight >= 0) || std::isinf(weight)) {
      const std::string at = index_text(tensor_.shape(), row * keys() + static_cast<Index>(j));
      throw InputError(path_, "weights", fmt::format("{} at {}", weight, at),
                       "need weights of 0 or more");
    }
    result.sum += weight;
    if (weight == 0) {
      ++result.zeros;
    } else {
      result.smallest = std::min(result.smallest, weight);
    }
  }
  const double tolerance = sum_tolerance(dtype_);
  if (result.zeros < keys() && !(std::abs(result.sum - 1) <= tolerance)) {
    // The index of the row, without that of its first key.
    std::string index = index_text(tensor_.shape(), row * keys());
    index.resize(index.rfind(','));
    throw InputError(
        path_, "weights", fmt::format("the sum {:.6g} in row {}]", result.sum, index),
        fmt::format("need 1 within {:g} in {}, or 0 throughout", tolerance, dtype_name(dtype_)));
  }
  return result;
}

void GivenWeights::check_rows(std::vector<std::string>& notes) {
  const double low = near_underflow(tensor_.dtype());
  const Index matrices = tensor_.shape().matrices(), rows = matrices * queries();
  Index zeros = 0, empty = 0, underflowed = 0;
  seen_rows_.assign(static_cast<std::size_t>(matrices), 0);
  std::vector<double> weights;
  for (Index row = 0; row < rows; ++row) {
    const RowSum of = add_up(row, weights);
    if (of.zeros == keys()) {
      ++empty;
      continue;
    }
    ++seen_rows_[static_cast<std::size_t>(row / queries())];
    zeros += of.zeros;
    underflowed += of.zeros > 0 && of.smallest < low ? 1 : 0;
  }
  if (empty > 0) {
    notes.push_back(fmt::format("{} of {} rows are 0 throughout: they see no key and are left out",
                                empty, rows));
  }
  if (zeros > 0) {
    notes.push_back(
        fmt::format("{} of {} weights{} are 0: their keys count as masked, not seen by the row",
                    zeros, (rows - empty) * keys(), empty > 0 ? " of the other rows" : ""));
  }
  if (underflowed > 0) {
    notes.push_back(fmt::format(
        "0 stands beside weights below {:g} in {} of {} rows: where it is no mask but underflow, a "
        "row's keys and variance are more than is counted",
        low, underflowed, rows));
  }
}

void GivenWeights::require_rows() const {
  for (Index head = 0; head < heads_; ++head) {
    Index seen = 0;
    for (Index b = 0; b < batch_; ++b) seen += seen_rows(b, head);
    if (seen > 0) continue;
    throw InputError(path_, "weights", fmt::format("head {} all 0", head),
                     "need a row that sees a key");
  }
}

}  // namespace attnlab
