#include "attnlab/experiments/mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace attnlab {
namespace {

using Call = AttentionVariant;

Index d_k(const Call& a) { return a.q->shape()[3]; }
Index kv_heads(const Call& a) { return a.k->shape()[1]; }
double default_scale(const Call& a) { return 1 / std::sqrt(static_cast<double>(d_k(a))); }

bool always(const Call& /*a*/) { return true; }
bool causal(const Call& a) { return a.mask.causal.value_or(false); }
bool windowed(const Call& a) { return a.mask.window_left >= 0 || a.mask.window_right >= 0; }
bool has_diagonal(const Call& a) { return causal(a) || windowed(a); }
bool rotates(const Call& a) { return a.positions.rope_theta.has_value(); }
bool biased(const Call& a) { return !a.positions.slopes.empty(); }
// The diagonal says where queries stand, too.
bool places_queries(const Call& a) { return has_diagonal(a) || a.positions.any(); }
bool aligned(const Call& a, Align align) {
  if (a.mask.offset) return false;
  if (a.mask.align != Align::automatic) return a.mask.align == align;
  // auto is after a past, and top-left without one.
  return align == Align::automatic ? a.past > 0 : align == Align::top_left && a.past == 0;
}
bool has_lengths(const Call& a) { return !a.mask.key_lengths.empty(); }
bool has_boolean(const Call& a) {
  return a.mask.mask_kind == MaskKind::attend || a.mask.mask_kind == MaskKind::ignore;
}
bool has_bias(const Call& a) { return !a.mask.mask.empty() && !has_boolean(a); }
bool has_square_mask(const Call& a) {
  if (a.mask.mask.empty()) return false;
  const Shape& shape = a.mask.mask.values->shape();
  return shape.rank() >= 2 && shape[-1] == shape[-2] && shape[-1] > 1;
}
bool grouped(const Call& a) { return kv_heads(a) > 1 && kv_heads(a) < a.heads(); }
bool many_heads(const Call& a) { return a.heads() > 1; }
bool heads_and_rows(const Call& a) { return a.heads() > 1 && a.queries() > 1; }
// What is re-read is what was given: a past is not in the layout of Q.
bool rereads_inputs(const Call& a) { return heads_and_rows(a) && a.past == 0; }
bool swaps_axes(const Call& a) {
  return rereads_inputs(a) && a.queries() == a.keys() && a.mask.mask.empty() && !has_lengths(a);
}
bool capped(const Call& a) { return a.softcap.has_value(); }
// Padding taken off queries hides all keys from them.
bool masks(const Call& a) { return a.mask.masks() || !a.query_lengths.empty(); }
bool many_masks(const Call& a) {
  const std::array<bool, 4> given = {causal(a), windowed(a), has_lengths(a), !a.mask.mask.empty()};
  return std::count(given.begin(), given.end(), true) > 1;
}

void set_diagonal(Call& a, Align align) {
  a.mask.offset.reset();
  a.mask.align = align;
}
void set_offset(Call& a, Index offset) {
  set_diagonal(a, Align::automatic);
  a.mask.offset = offset;
}

std::shared_ptr<const Tensor<double>> shared(Tensor<double> tensor) {
  return std::make_shared<const Tensor<double>>(std::move(tensor));
}
void reread_inputs(Call& a) {
  for (auto* tensor : {&a.q, &a.k, &a.v}) *tensor = shared(in_other_layout(**tensor, a.packed));
}
void swap_axes(Call& a) {
  for (auto* tensor : {&a.q, &a.k, &a.v}) *tensor = shared(with_swapped_axes(**tensor));
  a.output_place = OutputPlace::swapped;
}

bool is_power_of_2(Index count) { return count > 0 && (count & (count - 1)) == 0; }
void give_plain_slopes(Call& a) {
  const auto heads = static_cast<double>(a.heads());
  for (Index h = 0; h < a.heads(); ++h) {
    a.positions.slopes[static_cast<std::size_t>(h)] =
        std::exp2(-8 * static_cast<double>(h + 1) / heads);
  }
}

AnyTensor transposed(const AnyTensor& mask) {
  return mask.visit([](const auto& from) {
    auto to = from;
    for (Index i = 0; i < from.shape().matrices(); ++i) to.matrix(i) = from.matrix(i).transpose();
    return AnyTensor(std::move(to));
  });
}
void add_as_numbers(Call& a) {
  a.mask.mask_kind = MaskKind::add;
  a.mask.mask.values = AnyTensor(a.mask.mask.values->cast<double>());
}

constexpr std::array kMistakes = std::to_array<Mistake>({
    {"unscaled", Aspect::scale, "scores that are not scaled", "the scale {scale}",
     [](const Call& a) { return a.scale != 1; }, [](Call& a) { a.scale = 1; }},
    {"scaled_by_d", Aspect::scale, "scores divided by d_k, not by its root (as when scaled twice)",
     "the scale {scale}", always, [](Call& a) { a.scale = 1 / static_cast<double>(d_k(a)); }},
    {"scaled_by_d_model", Aspect::scale,
     "scores divided by the root of d_model (heads times d_k), not of d_k", "the scale {scale}",
     many_heads,
     [](Call& a) { a.scale = 1 / std::sqrt(static_cast<double>(a.heads() * d_k(a))); }},
    {"divided_by_d_model", Aspect::scale, "scores divided by d_model (heads times d_k) itself",
     "the scale {scale}", many_heads,
     [](Call& a) { a.scale = 1 / static_cast<double>(a.heads() * d_k(a)); }},
    {"scaled_twice", Aspect::scale, "scores scaled twice", "the scale {scale}",
     [](const Call& a) { return a.scale != 1 && a.scale != default_scale(a); }, [](Call& a) { a.scale *= a.scale; }},
    {"default_scale", Aspect::scale, "the scale 1/sqrt(d_k) = {default_scale}",
     "the scale {scale}", [](const Call& a) { return a.scale != default_scale(a); },
     [](Call& a) { a.scale = default_scale(a); }},
    {"base_2", Aspect::scale, "powers of 2 in place of exponentials, without the factor log2(e)",
     "exponentials", always, [](Call& a) { a.exponent_factor = std::numbers::ln2; }},

    {"top_left", Aspect::diagonal, "the diagonal top-left", "{diagonal}",
     [](const Call& a) { return places_queries(a) && !aligned(a, Align::top_left); },
     [](Call& a) { set_diagonal(a, Align::top_left); }},
    {"bottom_right", Aspect::diagonal, "the diagonal bottom-right", "{diagonal}",
     [](const Call& a) { return places_queries(a) && !aligned(a, Align::bottom_right); },
     [](Call& a) { set_diagonal(a, Align::bottom_right); }},
    {"bottom_right_of_padding", Aspect::diagonal,
     "the diagonal bottom-right of all keys, padding included", "{diagonal}",
     [](const Call& a) { return places_queries(a) && has_lengths(a); },
     [](Call& a) { set_offset(a, a.keys() - a.queries()); }},
    {"after_past", Aspect::diagonal, "the diagonal after the past keys", "{diagonal}",
     [](const Call& a) { return places_queries(a) && a.past > 0 && !aligned(a, Align::automatic); },
     [](Call& a) { set_offset(a, a.past); }},
    {"diagonal_early", Aspect::diagonal, "the diagonal one key early", "{diagonal}", has_diagonal,
     [](Call& a) { a.diagonal_shift = -1; }},
    {"diagonal_late", Aspect::diagonal, "the diagonal one key late", "{diagonal}", has_diagonal,
     [](Call& a) { a.diagonal_shift = 1; }},
    {"causal_ignored", Aspect::causal, "no causal mask", "a causal mask", causal,
     [](Call& a) { a.mask.causal = false; }},
    {"causal_added", Aspect::causal, "a causal mask, top-left", "no causal mask",
     [](const Call& a) { return !has_diagonal(a); },
     [](Call& a) {
       a.mask.causal = true;
       if (!a.positions.any()) a.mask.align = Align::top_left;
     }},
    {"causal_added_bottom_right", Aspect::causal, "a causal mask, bottom-right", "no causal mask",
     [](const Call& a) { return !places_queries(a) && a.queries() != a.keys(); },
     [](Call& a) {
       a.mask.causal = true;
       a.mask.align = Align::bottom_right;
     }},

    {"window_ignored", Aspect::window_left, "no window", "a window", windowed,
     [](Call& a) { a.mask.window_left = a.mask.window_right = -1; }},
    {"window_left_one_less", Aspect::window_left, "a window one key shorter to the left",
     "a window of {left} keys to the left of self", [](const Call& a) { return a.mask.window_left > 0; },
     [](Call& a) { --a.mask.window_left; }},
    {"window_left_one_more", Aspect::window_left, "a window one key longer to the left",
     "a window of {left} keys to the left of self",
     [](const Call& a) { return a.mask.window_left >= 0; }, [](Call& a) { ++a.mask.window_left; }},
    {"window_right_one_less", Aspect::window_right, "a window one key shorter to the right",
     "a window of {right} keys to the right of self",
     [](const Call& a) { return a.mask.window_right > 0; }, [](Call& a) { --a.mask.window_right; }},
    {"window_right_one_more", Aspect::window_right, "a window one key longer to the right",
     "a window of {right} keys to the right of self",
     [](const Call& a) { return a.mask.window_right >= 0; },
     [](Call& a) { ++a.mask.window_right; }},

    {"key_lengths_ignored", Aspect::lengths, "padding keys attended to", "key lengths",
     has_lengths, [](Call& a) { a.mask.key_lengths = {}; }},
    {"padding_on_queries", Aspect::lengths, "the padding taken off queries, not keys",
     "key lengths", has_lengths,
     [](Call& a) {
       const auto lengths = a.mask.key_lengths.values->cast<Index>();
       a.query_lengths.assign(lengths.values().begin(), lengths.values().end());
       a.mask.key_lengths = {};
     }},

    {"mask_ignored", Aspect::mask_file, "the mask file ignored", "a mask file",
     [](const Call& a) { return !a.mask.mask.empty(); },
     [](Call& a) {
       a.mask.mask = {};
       a.mask.mask_kind = MaskKind::automatic;
     }},
    {"mask_polarity", Aspect::mask_file, "the mask file read with the other polarity",
     "the mask file as its kind says", has_boolean,
     [](Call& a) {
       const bool attend = a.mask.mask_kind == MaskKind::attend;
       a.mask.mask_kind = attend ? MaskKind::ignore : MaskKind::attend;
     }},
    {"mask_added", Aspect::mask_file, "the 0 and 1 of the mask file added to the scores",
     "a boolean mask file", has_boolean, add_as_numbers},
    {"mask_transposed", Aspect::mask_file, "the mask file transposed", "the mask file as it is",
     has_square_mask,
     [](Call& a) { a.mask.mask.values = transposed(*a.mask.mask.values); }},
    {"mask_scaled", Aspect::mask_file, "the mask file added before the scaling",
     "one added after it", has_bias, [](Call& a) { a.scales_bias = true; }},
    {"all_masks_inverted", Aspect::seen, "everything hidden that should be seen, and the reverse",
     "true to mean seen", masks, [](Call& a) { a.inverted = true; }},

    {"masks_ignored", Aspect::seen, "no mask at all", "several", many_masks,
     [](Call& a) {
       // Where queries stand is no mask.
       MaskOptions none;
       none.align = a.mask.align;
       none.offset = a.mask.offset;
       a.mask = none;
     }},

    {"empty_rows_mean", Aspect::empty_rows, "the mean of V for queries that see no key",
     "0 for queries that see no key", masks,
     [](Call& a) { a.empty_rows = EmptyRows::mean_of_values; }},
    {"empty_rows_nan", Aspect::empty_rows, "NaN for queries that see no key",
     "0 for queries that see no key", masks, [](Call& a) { a.empty_rows = EmptyRows::nan; }},
    {"masked_to_zero", Aspect::hidden, "the scores of hidden keys set to 0",
     "hidden keys to have no weight", masks, [](Call& a) { a.fill = 0; }},
    {"finite_fill", Aspect::hidden, "the scores of hidden keys set to -1e4, not -infinity",
     "hidden keys to have no weight", masks, [](Call& a) { a.fill = -1e4; }},
    {"masked_after_softmax", Aspect::hidden,
     "weights of hidden keys set to 0 after the softmax, the others left as they are",
     "the softmax of the keys seen alone", masks, [](Call& a) { a.hides_after_softmax = true; }},

    {"softmax_over_queries", Aspect::axis, "the softmax over the queries",
     "the softmax over the keys", always, [](Call& a) { a.axis = SoftmaxAxis::queries; }},
    {"softmax_over_heads", Aspect::axis, "the softmax over the heads", "the softmax over the keys",
     many_heads, [](Call& a) { a.axis = SoftmaxAxis::heads; }},
    {"heads_tiled", Aspect::heads, "key and value heads tiled (0 1 0 1) over the query heads",
     "each repeated in place (0 0 1 1)", grouped, [](Call& a) { a.tiled_heads = true; }},

    {"layout_of_all", Aspect::layout,
     "heads and rows of inputs and output in the other memory order", "the layout given",
     rereads_inputs,
     [](Call& a) {
       reread_inputs(a);
       a.output_place = OutputPlace::other_layout;
     }},
    {"layout_of_inputs", Aspect::layout, "heads and rows of the inputs in the other memory order",
     "the layout given", rereads_inputs, reread_inputs},
    {"layout_of_output", Aspect::layout, "heads and rows of the output in the other memory order",
     "the layout given", heads_and_rows,
     [](Call& a) { a.output_place = OutputPlace::other_layout; }},
    {"heads_as_rows", Aspect::layout, "attention between the heads of each position",
     "attention between the positions of each head", swaps_axes, swap_axes},

    {"softcap_after_mask", Aspect::softcap, "the softcap after the mask", "one before it",
     [](const Call& a) { return capped(a) && masks(a); },
     [](Call& a) { a.softcap_place = SoftcapPlace::after_mask; }},
    {"softcap_ignored", Aspect::softcap, "no softcap", "the softcap {softcap}", capped,
     [](Call& a) { a.softcap.reset(); }},
    {"softcap_before_scale", Aspect::softcap, "the softcap before the scaling", "one after it",
     capped, [](Call& a) { a.softcap_place = SoftcapPlace::before_scale; }},

    {"rope_ignored", Aspect::rotation, "queries and keys that are not rotated",
     "them rotated by their positions", rotates, [](Call& a) { a.positions.rope_theta.reset(); }},
    {"rope_neighbours", Aspect::rotation, "neighbouring elements rotated in pairs (2c and 2c + 1)",
     "the halves in pairs (c and c + d_k / 2)", [](const Call& a) { return rotates(a) && d_k(a) > 2; },
     [](Call& a) { a.positions.pairs = RotaryPairs::neighbours; }},
    {"rope_on_queries_alone", Aspect::rotation, "keys that are not rotated", "both rotated",
     rotates, [](Call& a) { a.positions.rotates_keys = false; }},
    {"rope_queries_early", Aspect::rotation, "queries rotated one position early",
     "query i at i + offset", rotates, [](Call& a) { a.positions.query_shift = -1; }},
    {"rope_queries_late", Aspect::rotation, "queries rotated one position late",
     "query i at i + offset", rotates, [](Call& a) { a.positions.query_shift = 1; }},
    {"rope_backwards", Aspect::rotation, "queries and keys rotated the other way",
     "x[c] cos - x[c + d_k / 2] sin", rotates, [](Call& a) { a.positions.backwards = true; }},
    {"rope_past_not_counted", Aspect::rotation,
     "queries and keys rotated as if there were no past before them", "positions that count it",
     [](const Call& a) { return rotates(a) && a.past > 0; },
     [](Call& a) { a.positions.counts_past = false; }},
    {"rope_past_again", Aspect::rotation, "past keys rotated again", "them as the cache has them",
     [](const Call& a) { return rotates(a) && a.past > 0; },
     [](Call& a) { a.positions.rotates_past = true; }},
    {"rope_theta_10000", Aspect::rotation, "the base 10000 of the rotation", "the base {theta}",
     [](const Call& a) { return rotates(a) && *a.positions.rope_theta != 10000; },
     [](Call& a) { a.positions.rope_theta = 10000; }},

    {"alibi_ignored", Aspect::linear_bias, "no linear biases", "linear biases", biased,
     [](Call& a) { a.positions.slopes.clear(); }},
    {"alibi_heads_reversed", Aspect::linear_bias,
     "the slopes of linear biases in the reverse order of heads", "the steepest first",
     [](const Call& a) { return biased(a) && many_heads(a); },
     [](Call& a) { std::reverse(a.positions.slopes.begin(), a.positions.slopes.end()); }},
    {"alibi_plain_slopes", Aspect::linear_bias,
     "slopes 2^(-8 (h + 1) / heads) though the heads are no power of two",
     "the slopes of the next powers", [](const Call& a) { return biased(a) && !is_power_of_2(a.heads()); },
     give_plain_slopes},
    {"alibi_scaled", Aspect::linear_bias, "linear biases added before the scaling",
     "them added after it", [](const Call& a) { return biased(a) && !capped(a) && a.scale != 1; },
     [](Call& a) {
       for (double& slope : a.positions.slopes) slope *= a.scale;
     }},
    {"alibi_added", Aspect::linear_bias, "linear biases added, so that far keys gain",
     "them subtracted", biased,
     [](Call& a) {
       for (double& slope : a.positions.slopes) slope = -slope;
     }},

    {"k_v_swapped", Aspect::operands, "K and V swapped", "them as they are",
     [](const Call& a) { return d_k(a) == a.v->shape()[3]; },
     [](Call& a) { std::swap(a.k, a.v); }},
    {"q_k_swapped", Aspect::operands, "Q and K swapped", "them as they are",
     [](const Call& a) { return a.q->shape() == a.k->shape(); },
     [](Call& a) { std::swap(a.q, a.k); }},
    {"past_dropped", Aspect::past, "the past keys dropped", "a past",
     [](const Call& a) { return a.past > 0; }, [](Call& a) { a.hides_past = true; }},
    {"dropout_ignored", Aspect::dropout, "no dropout", "dropout",
     [](const Call& a) { return a.dropout > 0; }, [](Call& a) { a.dropout = 0; }},
    {"dropout_unscaled", Aspect::dropout, "kept weights not divided by 1 - dropout",
     "dropout that keeps the mean", [](const Call& a) { return a.dropout > 0; },
     [](Call& a) { a.dropout_rescales = false; }},

    {"float16_accumulation", Aspect::accumulator, "sums in float16", "sums in full precision",
     always, [](Call& a) { a.accumulator = Accumulator::float16; }},
    {"bfloat16_accumulation", Aspect::accumulator, "sums in bfloat16", "sums in full precision",
     always, [](Call& a) { a.accumulator = Accumulator::bfloat16; }},
});

std::string diagonal_text(const Call& a) {
  if (a.mask.offset) return fmt::format("the offset {}", *a.mask.offset);
  if (aligned(a, Align::bottom_right)) return "bottom-right";
  return aligned(a, Align::top_left) ? "top-left" : "the diagonal after the past";
}

}  // namespace

std::span<const Mistake> all_mistakes() { return kMistakes; }

std::string mistake_text(std::string_view text, const AttentionVariant& asked) {
  return fmt::format(
      fmt::runtime(text), fmt::arg("scale", fmt::format("{:.4g}", asked.scale)),
      fmt::arg("default_scale", fmt::format("{:.4g}", default_scale(asked))),
      fmt::arg("diagonal", diagonal_text(asked)), fmt::arg("left", asked.mask.window_left),
      fmt::arg("right", asked.mask.window_right),
      fmt::arg("softcap", fmt::format("{:.4g}", asked.softcap.value_or(0))),
      fmt::arg("theta", fmt::format("{:.6g}", asked.positions.rope_theta.value_or(0))));
}

}  // namespace attnlab
