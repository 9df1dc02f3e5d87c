#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/core/values.h"

namespace attnlab {

// Attention weights from outside, each row those of a softmax: numbers from 0 on with the sum 1, or
// 0 throughout where a query may attend to no key. The sum may be off by what rounding does to it:
// 1e-4, and 4e-3 where all are float16 numbers, in whatever type, 1e-2 where bfloat16 ones.
//
// A key is seen by a row when its weight is above 0. A mask makes it exactly 0, and so does
// underflow, which cannot be told from a mask.
class GivenWeights {
 public:
  // From [n, m], [heads, n, m] or [batch, heads, n, m]. Throws InputError naming the first row that
  // is none, or a head without a row that sees a key.
  GivenWeights(const TensorSource& source, std::vector<std::string>& notes);

  Index batch() const { return batch_; }
  Index heads() const { return heads_; }
  Index queries() const { return tensor_.shape()[-2]; }
  Index keys() const { return tensor_.shape()[-1]; }
  // Whether the heads have an axis of their own.
  bool has_head_axis() const { return tensor_.shape().rank() > 2; }

  // ln of the weights of the keys that query i of the head sees, in order: its logits up to a
  // number that they have in common. None for an empty row.
  void seen_logits(Index batch, Index head, Index i, std::vector<double>& logits) const;
  // Rows of the head in that batch entry that see a key.
  Index seen_rows(Index batch, Index head) const {
    return seen_rows_[static_cast<std::size_t>(batch * heads_ + head)];
  }

 private:
  struct RowSum {
    double sum = 0;
    double smallest = 1;  // above 0
    Index zeros = 0;
  };

  void read_row(Index row, std::vector<double>& weights) const;
  // Of that row, which `weights` then holds. Throws InputError where it is no softmax.
  RowSum add_up(Index row, std::vector<double>& weights) const;
  void check_rows(std::vector<std::string>& notes);
  void require_rows() const;

  std::string path_;
  AnyTensor tensor_;
  DType dtype_;  // the coarsest that holds them
  Index batch_ = 1, heads_ = 1;
  std::vector<Index> seen_rows_;
};

}  // namespace attnlab
