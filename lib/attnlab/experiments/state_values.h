#pragma once

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "attnlab/core/error.h"

namespace attnlab {

// The state of a point as numbers, for the files of shards.
class StateWriter {
 public:
  void add(std::span<const double> values) {
    values_.insert(values_.end(), values.begin(), values.end());
  }
  // A list whose length is not known beforehand.
  void add_list(std::span<const double> values) {
    values_.push_back(static_cast<double>(values.size()));
    add(values);
  }
  std::vector<double> take() { return std::move(values_); }

 private:
  std::vector<double> values_;
};

// The same numbers back. Throws InputError when there are too few or too many.
class StateReader {
 public:
  explicit StateReader(std::span<const double> values) : values_(values) {}

  std::span<const double> take(std::size_t count) {
    if (count > values_.size()) refuse();
    const auto taken = values_.first(count);
    values_ = values_.subspan(count);
    return taken;
  }
  std::vector<double> take_list() {
    const double count = take(1)[0];
    if (!(count >= 0 && count <= static_cast<double>(values_.size()))) refuse();
    const auto list = take(static_cast<std::size_t>(count));
    return {list.begin(), list.end()};
  }
  // One of `length` numbers.
  std::vector<double> take_list(std::size_t length) {
    std::vector<double> list = take_list();
    if (list.size() != length) refuse();
    return list;
  }
  void finish() const {
    if (!values_.empty()) refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    throw InputError("", "parts", "", "hold a state of another command or version");
  }

  std::span<const double> values_;
};

}  // namespace attnlab
