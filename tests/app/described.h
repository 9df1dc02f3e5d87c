#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/error.h"
#include "attnlab/core/request.h"

namespace attnlab {

enum class Fruit { apple, pear, blood_orange };
template <>
inline constexpr std::array<std::string_view, 3> kChoiceNames<Fruit> = {"apple", "pear",
                                                                        "blood-orange"};

inline constexpr std::array<std::string_view, 2> kTestWords = {"auto", "none"};

// An option of every kind.
struct EveryOption {
  bool flag = false;
  std::optional<bool> maybe_flag;
  Index count = 3;
  std::optional<Index> maybe_count;
  std::uint64_t seed = 0;
  double share = 0.5;
  std::optional<double> maybe_share;
  double any_number = 0;
  std::string text = "plain";
  std::vector<Index> counts = {1, 4};
  std::vector<double> shares = {0.25};
  std::vector<std::string> names = {"a", "b"};
  WordOrNumber scale = "auto";
  FilePath file;
  TensorSource tensor;
  TensorSource lengths;
  Fruit fruit = Fruit::pear;
  std::vector<Fruit> fruits = {Fruit::apple};
  Index hidden = 0;

  static constexpr auto fields() {
    using O = EveryOption;
    return std::tuple(
        field("flag", &O::flag, "a flag"), field("maybe_flag", &O::maybe_flag, "a flag or nothing"),
        field("count", &O::count, "a count", {.unit = "pairs", .range = between<Index>(1, 17)}),
        field("maybe_count", &O::maybe_count, "a count or nothing", {.range = at_least<Index>(2)}),
        field("seed", &O::seed, "a seed"),
        field("share", &O::share, "a share",
              {.range = {.low = 0.0, .high = 1.0, .high_open = true}}),
        field("maybe_share", &O::maybe_share, "a share or nothing", {.range = above(0.0)}),
        field("any_number", &O::any_number, "any number", {.non_finite = true}),
        field("text", &O::text, "a text"),
        field("counts", &O::counts, "counts", {.range = at_least<Index>(1)}),
        field("shares", &O::shares, "shares", {.range = between(0.0, 1.0)}),
        field("names", &O::names, "names"),
        field("scale", &O::scale, "a factor", {.unit = "NUMBER", .words = kTestWords}),
        field("file", &O::file, "a file"), field("tensor", &O::tensor, "a tensor"),
        field("lengths", &O::lengths, "lengths", {.list_text = true}),
        field("fruit", &O::fruit, "a fruit"), field("fruits", &O::fruits, "fruits"),
        field("hidden", &O::hidden, "does not change results", {.echo = false}));
  }
};

struct NamedTensors {
  NamedFiles save;
  static constexpr auto fields() {
    return std::tuple(field("save", &NamedTensors::save, "files by name"));
  }
};

// What `action` throws; fails the test when it throws nothing.
template <class F>
std::string message_of(const F& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

inline const OptionRef& option_named(const std::vector<OptionRef>& options, std::string_view name) {
  for (const OptionRef& option : options) {
    if (option.name == name) return option;
  }
  throw std::logic_error("no option " + std::string(name));
}

}  // namespace attnlab
