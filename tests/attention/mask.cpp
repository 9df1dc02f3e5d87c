#include "attnlab/attention/mask.h"

#include "attention/attention_test.h"

namespace attnlab {
namespace {

using test::error_of;
using test::says;

constexpr Index kMost = std::numeric_limits<Index>::max();
constexpr Index kLeast = std::numeric_limits<Index>::min();

TEST_CASE("a mask without parts shows every key") {
  const Mask mask(2, 1, 3, 4);
  CHECK(mask.key_range(1, 2) == KeyRange{0, 4});
  CHECK(mask.may_attend(1, 0, 2, 3));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 4));
  CHECK_FALSE(mask.has_elementwise());
  CHECK(mask.bias<float>(0, 0, 0, 0) == 0);
}

TEST_CASE("a causal mask ends at the diagonal, wherever the offset puts it") {
  Mask mask(2, 1, 3, 4);
  mask.set_causal();
  CHECK(mask.key_range(0, 0) == KeyRange{0, 1});
  CHECK(mask.key_range(0, 2) == KeyRange{0, 3});
  mask.set_offset(1);
  CHECK(mask.key_range(0, 0) == KeyRange{0, 2});
  CHECK(mask.key_range(1, 2) == KeyRange{0, 4});
  mask.set_offsets({2, -2});
  CHECK(mask.key_range(0, 0) == KeyRange{0, 3});
  CHECK(mask.key_range(1, 0).empty());
  CHECK(mask.key_range(1, 1).empty());
  CHECK(mask.key_range(1, 2) == KeyRange{0, 1});
}

TEST_CASE("a window counts keys beside self, measured from the diagonal") {
  Mask mask(1, 1, 5, 9);
  mask.set_window(2, 1);
  CHECK(mask.key_range(0, 0) == KeyRange{0, 2});
  CHECK(mask.key_range(0, 4) == KeyRange{2, 6});
  mask.set_offset(3);
  CHECK(mask.key_range(0, 0) == KeyRange{1, 5});
  mask.set_window(-1, 0);
  CHECK(mask.key_range(0, 0) == KeyRange{0, 4});
  mask.set_window(0, -1);
  CHECK(mask.key_range(0, 0) == KeyRange{3, 9});
  mask.set_window(-1, -1);
  CHECK(mask.key_range(0, 0) == KeyRange{0, 9});
}

TEST_CASE("windows, causal mask and lengths leave the keys that all of them allow") {
  Mask mask(2, 1, 4, 6);
  mask.set_causal();
  mask.set_window(1, 5);
  mask.set_key_lengths({6, 2});
  CHECK(mask.key_range(0, 3) == KeyRange{2, 4});
  CHECK(mask.key_range(1, 2) == KeyRange{1, 2});
  CHECK(mask.key_range(1, 3).empty());
  mask.set_key_lengths({0});
  CHECK(mask.key_range(0, 0).empty());
}

TEST_CASE("a key range stays within the keys, however large offset and window are") {
  for (const Index offset : {kMost, kMost - 1, kLeast, kLeast + 1, Index{0}}) {
    for (const Index left : {Index{-1}, Index{0}, Index{2}, kMost}) {
      for (const Index right : {Index{-1}, Index{0}, Index{2}, kMost}) {
        for (const bool causal : {false, true}) {
          Mask mask(1, 1, 3, 5);
          mask.set_offset(offset);
          mask.set_window(left, right);
          if (causal) mask.set_causal();
          for (Index i = 0; i < 3; ++i) {
            const KeyRange keys = mask.key_range(0, i);
            CHECK(0 <= keys.first);
            CHECK(keys.first <= keys.last);
            CHECK(keys.last <= 5);
            for (Index j = 0; j < 5; ++j) {
              // In long double, which holds every sum of these exactly.
              const auto wide = [](Index value) { return static_cast<long double>(value); };
              const long double self = wide(i) + wide(offset);
              const bool seen = (!causal || wide(j) <= self) &&
                                (left < 0 || wide(j) >= self - wide(left)) &&
                                (right < 0 || wide(j) <= self + wide(right));
              CHECK(seen == (keys.first <= j && j < keys.last));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a boolean mask broadcasts from every rank by NumPy's rules") {
  const auto seen = [](Tensor<bool> values, Index b, Index h, Index i, Index j) {
    Mask mask(2, 3, 2, 4);
    mask.set_boolean(std::move(values));
    CHECK(mask.has_elementwise());
    return mask.may_attend(b, h, i, j);
  };
  const auto only = [](const Shape& shape, Index at) {
    Tensor<bool> values(shape, false);
    values[at] = true;
    return values;
  };
  CHECK(seen(Tensor<bool>(Shape{}, true), 1, 2, 1, 3));
  CHECK_FALSE(seen(Tensor<bool>(Shape{}, false), 1, 2, 1, 3));
  CHECK(seen(only({4}, 2), 1, 2, 1, 2));
  CHECK_FALSE(seen(only({4}, 2), 1, 2, 1, 3));
  CHECK(seen(only({2, 4}, 4 + 1), 1, 2, 1, 1));
  CHECK_FALSE(seen(only({2, 4}, 4 + 1), 1, 2, 0, 1));
  CHECK(seen(only({2, 1}, 1), 0, 0, 1, 3));
  CHECK_FALSE(seen(only({2, 1}, 1), 0, 0, 0, 3));
  CHECK(seen(only({1, 4}, 3), 0, 0, 0, 3));
  CHECK(seen(only({3, 1, 4}, 4 + 2), 1, 1, 1, 2));
  CHECK_FALSE(seen(only({3, 1, 4}, 4 + 2), 1, 2, 1, 2));
  CHECK(seen(only({2, 1, 1, 4}, 4), 1, 2, 1, 0));
  CHECK_FALSE(seen(only({2, 1, 1, 4}, 4), 0, 2, 1, 0));
  CHECK(seen(only({2, 3, 2, 4}, ((1 * 3 + 2) * 2 + 1) * 4 + 3), 1, 2, 1, 3));
  CHECK_FALSE(seen(only({2, 3, 2, 4}, ((1 * 3 + 2) * 2 + 1) * 4 + 3), 1, 1, 1, 3));
}

TEST_CASE("a last axis shorter than the keys hides the rest, one of 1 does not") {
  Mask mask(1, 1, 1, 4);
  mask.set_boolean(Tensor<bool>({2}, {false, true}));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 0));
  CHECK(mask.may_attend(0, 0, 0, 1));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 2));
  mask.set_boolean(Tensor<bool>({1}, {true}));
  CHECK(mask.may_attend(0, 0, 0, 3));
  mask.set_additive(Tensor<float>({3}, {1, 2, 3}));
  CHECK(mask.may_attend(0, 0, 0, 2));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 3));
  CHECK(mask.bias<double>(0, 0, 0, 3) == -test::kInfinity);
}

TEST_CASE("a mask that does not broadcast is refused with both shapes") {
  Mask mask(2, 3, 2, 4);
  for (const Shape& shape :
       {Shape{5}, Shape{0}, Shape{3, 4}, Shape{2, 2, 4}, Shape{3, 3, 2, 4}, Shape{0, 3, 2, 4}}) {
    const std::string want = "mask: got " + shape.str() + ", ";
    CHECK(says(error_of([&] { mask.set_boolean(Tensor<bool>(shape)); }), {want, "[2, 3, 2, 4]"}));
    CHECK(says(error_of([&] { mask.set_additive(Tensor<float>(shape)); }), {want, "[2, 3, 2, 4]"}));
  }
  Mask no_keys(1, 1, 2, 0);
  CHECK(error_of([&] { no_keys.set_boolean(Tensor<bool>({2, 0})); }).empty());
  CHECK(error_of([&] { no_keys.set_boolean(Tensor<bool>({1})); }).empty());
}

TEST_CASE("only minus infinity in an additive mask hides, in every number type") {
  Mask mask(1, 1, 1, 6);
  mask.set_additive(
      Tensor<double>({6}, {-test::kInfinity, -1e9, test::kInfinity, test::kNan, -1e300, 0.1}));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 0));
  for (Index j = 1; j < 6; ++j) CHECK(mask.may_attend(0, 0, 0, j));
  CHECK(mask.bias<float>(0, 0, 0, 1) == -1e9f);
  CHECK(mask.bias<double>(0, 0, 0, 2) == test::kInfinity);
  CHECK(std::isnan(mask.bias<float>(0, 0, 0, 3)));
  CHECK(mask.bias<float>(0, 0, 0, 4) == std::numeric_limits<float>::lowest());
  CHECK(mask.bias<double>(0, 0, 0, 4) == -1e300);
  CHECK(mask.bias<float>(0, 0, 0, 5) == 0.1f);

  mask.set_additive(Tensor<std::int8_t>({6}, {-128, 1, 2, 3, 4, 5}));
  CHECK(mask.bias<double>(0, 0, 0, 0) == -128);
  mask.set_additive(Tensor<Float16>({1}, {Float16(-std::numeric_limits<float>::infinity())}));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 5));
}

TEST_CASE("boolean and additive masks hide together with the key range") {
  Mask mask(1, 1, 1, 4);
  mask.set_boolean(Tensor<bool>({4}, {false, true, true, true}));
  mask.set_additive(Tensor<double>({4}, {1, -test::kInfinity, 3, 4}));
  mask.set_key_lengths({3});
  CHECK_FALSE(mask.may_attend(0, 0, 0, 0));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 1));
  CHECK(mask.may_attend(0, 0, 0, 2));
  CHECK_FALSE(mask.may_attend(0, 0, 0, 3));
}

TEST_CASE("a row is read as its elements are, from any key to any other") {
  test::Numbers numbers;
  for (const Index last_axis : {1, 3, 7}) {
    Tensor<bool> boolean({2, 1, 3, last_axis});
    for (bool& value : boolean.values()) value = numbers.flip();
    Mask mask(2, 2, 3, 7);
    mask.set_boolean(std::move(boolean));
    mask.set_additive(numbers.tensor<float>({2, 3, last_axis}));
    for (Index first = 0; first <= 7; ++first) {
      for (Index last = first; last <= 7; ++last) {
        const auto count = static_cast<std::size_t>(last - first);
        std::vector<std::uint8_t> seen(count, 9);
        std::vector<double> bias(count, 9);
        mask.read_row<double>(1, 1, 2, {first, last}, seen, bias);
        for (std::size_t x = 0; x < count; ++x) {
          const Index j = first + static_cast<Index>(x);
          CHECK(seen[x] == (mask.may_attend(1, 1, 2, j) ? 1 : 0));
          CHECK(bias[x] == mask.bias<double>(1, 1, 2, j));
        }
      }
    }
  }
}

TEST_CASE("offsets, windows and lengths out of place are refused by name and number") {
  Mask mask(2, 1, 3, 4);
  CHECK(says(error_of([&] { mask.set_offsets({1, 2, 3}); }), {"offset: got 3 values", "2 batch"}));
  CHECK(says(error_of([&] { mask.set_key_lengths({1, 2, 3}); }), {"key_lengths: got 3", "2"}));
  CHECK(says(error_of([&] { mask.set_key_lengths({}); }), {"key_lengths: got 0 values"}));
  CHECK(says(error_of([&] {
               mask.set_key_lengths({5, 1});
             }),
             {"key_lengths: got 5", "0 to the 4"}));
  CHECK(says(error_of([&] { mask.set_key_lengths({1, -1}); }), {"key_lengths: got -1"}));
  CHECK(says(error_of([&] { mask.set_window(-2, 0); }), {"window_left: got -2", "-1"}));
  CHECK(says(error_of([&] { mask.set_window(0, kLeast); }), {"window_right: got -92"}));
}

}  // namespace
}  // namespace attnlab
