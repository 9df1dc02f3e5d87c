#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "attnlab/attention/mask.h"
#include "attnlab/core/describe.h"
#include "attnlab/experiments/position_options.h"

namespace attnlab {

// Where query 0 stands among the keys: auto is after the past keys, or at key 0 without a past.
enum class Align { automatic, top_left, bottom_right };
template <>
inline constexpr std::array<std::string_view, 3> kChoiceNames<Align> = {"auto", "top-left",
                                                                        "bottom-right"};

// What the values of a mask file mean.
enum class MaskKind { automatic, attend, ignore, add };
template <>
inline constexpr std::array<std::string_view, 4> kChoiceNames<MaskKind> = {"auto", "attend",
                                                                           "ignore", "add"};

// Which keys a query may attend to. All parts are composed with AND.
struct MaskOptions {
  std::optional<bool> causal;
  Align align = Align::automatic;
  std::optional<Index> offset;
  TensorSource mask;
  MaskKind mask_kind = MaskKind::automatic;
  TensorSource key_lengths;
  Index window_left = -1;
  Index window_right = -1;

  // Whether there is any mask at all.
  bool masks() const {
    return causal.value_or(false) || !mask.empty() || !key_lengths.empty() || window_left >= 0 ||
           window_right >= 0;
  }

  static constexpr auto fields() {
    using O = MaskOptions;
    return std::tuple(
        field("causal", &O::causal, "query i sees keys j <= i + offset only"),
        field("align", &O::align,
              "the diagonal of causal masks, windows and positions: top-left is offset 0, "
              "bottom-right is keys minus queries (with key lengths, each batch entry's own), auto "
              "is "
              "the past length"),
        field("offset", &O::offset, "the diagonal as a number: query i stands at key i + offset",
              {.unit = "N"}),
        field("mask", &O::mask, "mask broadcast to [batch, heads, n, m]", {.unit = "FILE"}),
        field("mask_kind", &O::mask_kind,
              "attend: true may attend; ignore: true may not; add: added to the scores; auto adds "
              "numbers and refuses booleans"),
        field("key_lengths", &O::key_lengths, "keys that each batch entry has, the rest is padding",
              {.unit = "L,...", .list_text = true}),
        field("window_left", &O::window_left, "keys seen before self, self not counted; -1 is all",
              {.unit = "N", .range = at_least<Index>(-1)}),
        field("window_right", &O::window_right, "keys seen after self, self not counted; -1 is all",
              {.unit = "N", .range = at_least<Index>(-1)}));
  }
};

// The mask of [batch, heads, queries, keys] that the options describe, linear biases included;
// `past` of the keys come from a past. What was decided for the user (alignment where queries and
// keys differ, polarity) is said in `notes`. Throws InputError.
Mask make_mask(const MaskOptions& options, const PositionOptions& positions, Index batch,
               Index heads, Index queries, Index keys, Index past, std::vector<std::string>& notes);

}  // namespace attnlab
