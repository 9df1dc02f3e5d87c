#include <cmath>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/io/json.h"
#include "attnlab/io/number_text.h"

namespace attnlab {
namespace {

// A value as it stands in an error message.
std::string shown(const Json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return dump_json(value);
}

class TensorReader {
 public:
  TensorReader(std::string_view source, std::string_view field) : source_(source), field_(field) {}

  AnyTensor read(const Json& value) {
    const Json& first = measure(value);
    check(value);
    const Shape shape(lengths_);
    if (first.is_boolean()) return filled<bool>(shape, value);
    return filled<double>(shape, value);
  }

 private:
  // Takes the lengths from the first array of every depth; the first number.
  const Json& measure(const Json& value) {
    const Json* inner = &value;
    for (; inner->is_array(); inner = &inner->front()) {
      if (inner->empty()) fail(zeros(), "[]", "need at least one value");
      if (lengths_.size() == Shape::kMaxRank) fail({}, "", "nested deeper than 4 arrays");
      lengths_.push_back(static_cast<Index>(inner->size()));
    }
    return *inner;
  }
  std::vector<std::size_t> zeros() const { return std::vector<std::size_t>(lengths_.size()); }

  // Every array must be as long as the first of its depth. To be known before the tensor is
  // allocated: only then are there as many values as the shape says.
  void check(const Json& value) {
    if (index_.size() == lengths_.size()) {
      if (value.is_array()) fail(index_, shown(value), "need a number, as beside it");
      return;
    }
    const auto expected = static_cast<std::size_t>(lengths_[index_.size()]);
    if (!value.is_array()) {
      fail(index_, shown(value), "need an array of " + counted(expected) + ", as beside it");
    }
    if (value.size() != expected) {
      std::vector<std::size_t> parent = index_;
      const std::size_t row = parent.back();
      parent.pop_back();
      fail(parent, "",
           "row " + std::to_string(row) + " has " + counted(value.size()) + ", expected " +
               std::to_string(expected));
    }
    // Numbers in a row are looked at when they are read.
    index_.push_back(0);
    for (const Json& element : value) {
      check(element);
      ++index_.back();
    }
    index_.pop_back();
  }
  static std::string counted(std::size_t n) {
    return std::to_string(n) + (n == 1 ? " value" : " values");
  }

  template <class T>
  Tensor<T> filled(const Shape& shape, const Json& value) {
    require_memory(static_cast<std::uint64_t>(shape.size()) * sizeof(T), source_);
    Tensor<T> tensor = Tensor<T>::uninitialized(shape);
    T* next = tensor.data();
    fill(value, next);
    return tensor;
  }
  template <class T>
  void fill(const Json& value, T*& next) {
    if (index_.size() == lengths_.size()) {
      *next++ = element<T>(value);
      return;
    }
    index_.push_back(0);
    for (const Json& inner : value) {
      fill(inner, next);
      ++index_.back();
    }
    index_.pop_back();
  }

  template <class T>
  T element(const Json& value) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) fail(index_, shown(value), "need true or false, as beside it");
      return value.get<bool>();
    } else {
      if (value.is_number()) return value.get<double>();
      if (value.is_string()) {
        if (const auto number = parse_non_finite(value.get_ref<const std::string&>())) {
          return *number;
        }
        fail(index_, shown(value),
             "need a number (the only strings are \"NaN\", \"Infinity\" and \"-Infinity\")");
      }
      fail(index_, shown(value), "need a number");
    }
  }

  [[noreturn]] void fail(const std::vector<std::size_t>& index, std::string_view value,
                         std::string_view rule) const {
    std::string at(field_);
    for (const std::size_t i : index) at.append("[").append(std::to_string(i)).append("]");
    throw InputError(source_, at, value, rule);
  }

  std::string_view source_, field_;
  std::vector<Index> lengths_;
  std::vector<std::size_t> index_;  // of the value at hand
};

template <class T>
Json element_json(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return number_to_json(convert_element<double>(value));
  }
}

template <class T>
Json nested(const Tensor<T>& tensor, int axis, Index& next) {
  if (axis == tensor.shape().rank()) return element_json<T>(tensor[next++]);
  Json array = Json::array();
  auto& elements = array.get_ref<Json::array_t&>();
  elements.reserve(static_cast<std::size_t>(tensor.shape()[axis]));
  for (Index i = 0; i < tensor.shape()[axis]; ++i) {
    elements.push_back(nested(tensor, axis + 1, next));
  }
  return array;
}

}  // namespace

AnyTensor tensor_from_json(const Json& value, std::string_view source, std::string_view field) {
  return TensorReader(source, field).read(value);
}

Json number_to_json(double value) {
  if (std::isfinite(value)) return value;
  return std::string(non_finite_name(value));
}

Json tensor_to_json(const AnyTensor& tensor) {
  return tensor.visit([](const auto& t) {
    Index next = 0;
    return nested(t, 0, next);
  });
}

}  // namespace attnlab
