// Every mistake of the table made on purpose, by other code, has to be named.

#include "attnlab/experiments/mistakes.h"

#include <numbers>
#include <set>
#include <string>

#include "attnlab/experiments/attend.h"
#include "catch.h"
#include "experiments/turned.h"
#include "experiments/wrong_attention.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A mistake made on purpose: what was asked for, and what came.
struct Made {
  std::string name;
  DiagnoseOptions options;
};

class Workshop {
 public:
  // Keeps `output` as the candidate of a mistake.
  void made(const std::string& name, const Situation& s, const Numbers& output) {
    Made& one = all_.emplace_back(Made{name, s.options});
    if (one.options.candidate.empty()) one.options.candidate = source(s.output(), output);
  }
  // The same with other keys seen.
  template <class Sees>
  void sees(const std::string& name, Situation s, const Sees& sees) {
    s.call.sees = sees;
    made(name, s, reference::attend(s.call).output);
  }
  const std::vector<Made>& all() const { return all_; }

 private:
  std::vector<Made> all_;
};

using At = std::size_t;
bool causal(At /*b*/, At /*h*/, At i, At j) { return j <= i; }

void make_scales(Workshop& shop) {
  const auto scaled = [&](const std::string& name, double scale, WordOrNumber asked = "auto") {
    Situation s(5, 7, 3, 2);
    s.options.scores.scale = asked;
    s.call.scale = scale;
    shop.made(name, s, reference::attend(s.call).output);
  };
  scaled("unscaled", 1);
  scaled("scaled_by_d", 1.0 / 3);
  scaled("scaled_by_d_model", 1 / std::sqrt(12.0));
  scaled("divided_by_d_model", 1 / 12.0);
  scaled("scaled_twice", .49, .7);
  scaled("default_scale", 1 / std::sqrt(3.0), .7);
  scaled("base_2", std::numbers::ln2 / std::sqrt(3.0));
}

void make_diagonals(Workshop& shop) {
  Situation s(5, 7, 3, 2);
  shop.sees("causal_added", s, causal);
  shop.sees("causal_added_bottom_right", s, [](At, At, At i, At j) { return j <= i + 2; });
  s.options.mask.causal = true;
  shop.sees("bottom_right", s, [](At, At, At i, At j) { return j <= i + 2; });
  shop.sees("diagonal_early", s, [](At, At, At i, At j) { return j < i; });
  shop.sees("diagonal_late", s, [](At, At, At i, At j) { return j <= i + 1; });
  shop.sees("causal_ignored", s, [](At, At, At, At) { return true; });
  s.options.mask.align = Align::bottom_right;
  shop.sees("top_left", s, causal);
  s.options.mask.key_lengths = given<std::int64_t>({2}, {5, 6});
  shop.sees("bottom_right_of_padding", s,
            [](At b, At, At i, At j) { return j < 5 + b && j <= i + 2; });
}

void make_windows(Workshop& shop) {
  Situation s(6, 7, 3, 2);
  s.options.mask.window_left = 2;
  s.options.mask.window_right = 1;
  const auto window = [&](const std::string& name, At left, At right) {
    shop.sees(name, s, [=](At, At, At i, At j) { return j <= i + right && i <= j + left; });
  };
  window("window_ignored", 9, 9);
  window("window_left_one_less", 1, 1);
  window("window_left_one_more", 3, 1);
  window("window_right_one_less", 2, 0);
  window("window_right_one_more", 2, 2);
}

void make_past_and_lengths(Workshop& shop) {
  Situation with_past(5, 7, 3, 2);
  give_past(with_past, 3);
  shop.sees("past_dropped", with_past, [](At, At, At, At j) { return j >= 3; });
  with_past.options.mask.causal = true;
  with_past.options.mask.align = Align::top_left;
  shop.sees("after_past", with_past, [](At, At, At i, At j) { return j <= i + 3; });

  Situation s(5, 7, 3, 2);
  s.options.mask.key_lengths = given<std::int64_t>({2}, {3, 4});
  shop.sees("key_lengths_ignored", s, [](At, At, At, At) { return true; });
  shop.sees("padding_on_queries", s, [](At b, At, At i, At) { return i < 3 + b; });
}

void make_mask_files(Workshop& shop) {
  Situation s(3, 3, 3, 2);
  const Numbers mask = {1, 0, 1, 1, 1, 0, 0, 0, 1};
  s.options.mask.mask = source({3, 3}, mask);
  s.options.mask.mask_kind = MaskKind::attend;
  shop.sees("mask_ignored", s, [](At, At, At, At) { return true; });
  shop.sees("mask_polarity", s, [=](At, At, At i, At j) { return mask[i * 3 + j] == 0; });
  shop.sees("mask_transposed", s, [=](At, At, At i, At j) { return mask[j * 3 + i] == 1; });
  s.call.bias = [=](At, At, At i, At j) { return mask[i * 3 + j]; };
  shop.made("mask_added", s, reference::attend(s.call).output);
  s.options.mask.mask_kind = MaskKind::add;
  s.call.bias = [=](At, At, At i, At j) { return mask[i * 3 + j] / std::sqrt(3.0); };
  shop.made("mask_scaled", s, reference::attend(s.call).output);
}

void make_unmasked(Workshop& shop) {
  Situation s(5, 7, 3, 2);
  s.options.mask.causal = true;
  s.options.mask.key_lengths = given<std::int64_t>({1}, {4});
  shop.sees("masks_ignored", s, [](At, At, At, At) { return true; });
}

void make_hidden(Workshop& shop) {
  Situation s(5, 7, 3, 2);
  s.options.mask.causal = true;
  s.call.sees = causal;
  const Numbers scores = reference::attend(s.call).scores;
  shop.sees("all_masks_inverted", s, [](At, At, At i, At j) { return j > i; });
  shop.made("masked_to_zero", s, attend_changed(s.call, scores, [](double score, bool seen) {
              return seen ? score : 0;
            }));
  reference::Call unmasked = s.call;
  unmasked.sees = [](At, At, At, At) { return true; };
  Numbers weights = reference::attend(unmasked).weights;
  for (At at = 0; at < weights.size(); ++at) {
    if (at % 7 > at / 7 % 5) weights[at] = 0;
  }
  shop.made("masked_after_softmax", s, mix(s.call, weights));

  s.options.scores.scale = s.call.scale = 3e4;
  shop.made("finite_fill", s,
            attend_changed(s.call, reference::attend(s.call).scores,
                           [](double score, bool seen) { return seen ? score : -1e4; }));
}

void make_empty_rows(Workshop& shop) {
  Situation s(5, 7, 3, 2);
  s.options.mask.causal = true;
  s.options.mask.offset = -2;
  s.call.sees = [](At, At, At i, At j) { return j + 2 <= i; };
  Numbers weights = reference::attend(s.call).weights;
  const auto fill = [&](double value) {
    for (At at = 0; at < weights.size(); ++at) {
      if (at / 7 % 5 < 2) weights[at] = value;
    }
    return mix(s.call, weights);
  };
  shop.made("empty_rows_mean", s, fill(1.0 / 7));
  shop.made("empty_rows_nan", s, fill(std::nan("")));
}

void make_axes_and_heads(Workshop& shop) {
  Situation s(5, 7, 3, 2);
  const Numbers scores = reference::attend(s.call).scores;
  shop.made("softmax_over_queries", s,
            mix(s.call, softmax_over(s.call, scores,
                                     [](At b, At h, At, At j) { return (b * 4 + h) * 7 + j; })));
  shop.made("softmax_over_heads", s,
            mix(s.call, softmax_over(s.call, scores,
                                     [](At b, At, At i, At j) { return (b * 5 + i) * 7 + j; })));
  reference::Call each = s.call;
  each.kv_heads = 4;
  const auto tiled = [](const Numbers& values, std::ptrdiff_t per_batch) {
    Numbers result;
    for (auto start = values.begin(); start != values.end(); start += per_batch) {
      for (int copy = 0; copy < 2; ++copy) result.insert(result.end(), start, start + per_batch);
    }
    return result;
  };
  each.k = tiled(s.call.k, 2 * 7 * 3);
  each.v = tiled(s.call.v, 2 * 7 * 2);
  shop.made("heads_tiled", s, reference::attend(each).output);
}

void make_layouts(Workshop& shop) {
  Situation s(5, 7, 3, 2);
  // What lies in memory as [batch, n, heads, d] is [batch, heads, n, d] with swapped axes.
  reference::Call other = s.call;
  other.q = swapped(s.call.q, 2, 5, 4, 3);
  other.k = swapped(s.call.k, 2, 7, 2, 3);
  other.v = swapped(s.call.v, 2, 7, 2, 2);
  const Numbers output = reference::attend(other).output;
  shop.made("layout_of_inputs", s, output);
  shop.made("layout_of_all", s, swapped(output, 2, 4, 5, 2));
  shop.made("layout_of_output", s, swapped(reference::attend(s.call).output, 2, 4, 5, 2));

  // Packed heads the other way around.
  Situation packed = s;
  const auto flat = [](const Numbers& values, std::size_t heads, std::size_t n, std::size_t d) {
    return source({2, size(n), size(heads * d)}, values);
  };
  packed.options.sizes.heads = 4;
  packed.options.sizes.kv_heads = 2;
  packed.options.query_key.q = flat(s.call.q, 4, 5, 3);
  packed.options.query_key.k = flat(s.call.k, 2, 7, 3);
  packed.options.value.v = flat(s.call.v, 2, 7, 2);
  const Numbers as_it_lies = reference::attend(s.call).output;
  packed.options.candidate = flat(as_it_lies, 4, 5, 2);
  shop.made("layout_of_all", packed, {});
  packed.options.candidate = flat(swapped(as_it_lies, 2, 4, 5, 2), 4, 5, 2);
  shop.made("layout_of_inputs", packed, {});
  packed.options.candidate = flat(output, 4, 5, 2);
  packed.options.query_key.q = flat(s.call.q, 4, 5, 3);
  shop.made("layout_of_output", packed, {});

  Situation square(5, 5, 3, 2);
  reference::Call crossed = square.call;
  crossed.heads = crossed.kv_heads = 5;
  crossed.n = 4;
  crossed.m = 2;
  crossed.q = swapped(square.call.q, 2, 4, 5, 3);
  crossed.k = swapped(square.call.k, 2, 2, 5, 3);
  crossed.v = swapped(square.call.v, 2, 2, 5, 2);
  shop.made("heads_as_rows", square, swapped(reference::attend(crossed).output, 2, 5, 4, 2));
}

void make_softcaps(Workshop& shop) {
  Situation s(5, 7, 3, 2);
  s.options.mask.causal = true;
  s.options.scores.softcap = .8;
  s.call.sees = causal;
  shop.made("softcap_ignored", s, reference::attend(s.call).output);
  const reference::Result plain = reference::attend(s.call);
  shop.made("softcap_after_mask", s,
            attend_changed(s.call, plain.scores, [](double score, bool seen) {
              return .8 * std::tanh((seen ? score : -kInfinity) / .8);
            }));
  shop.made("softcap_before_scale", s,
            attend_changed(s.call, plain.raw_scores, [](double raw, bool seen) {
              return seen ? .8 * std::tanh(raw / .8) / std::sqrt(3.0) : -kInfinity;
            }));
}

// The call with queries from position `first` on and keys from `first_key`, turned by `direction`.
reference::Call turned_call(const reference::Call& call, double theta, double first,
                            double first_key = 0, At past = 0, double direction = 1) {
  reference::Call c = call;
  c.q = turned(c.q, c.heads, c.n, c.d_k, theta,
               [=](At, At i) { return direction * (first + static_cast<double>(i)); });
  c.k = turned(
      c.k, c.kv_heads, c.m, c.d_k, theta,
      [=](At, At j) { return direction * (first_key + static_cast<double>(j)); }, past);
  return c;
}

void make_rotations(Workshop& shop) {
  Situation s(5, 7, 4, 2);
  s.options.positions.rope_theta = 50;
  const auto made = [&](const std::string& name, const reference::Call& call) {
    shop.made(name, s, reference::attend(call).output);
  };
  made("rope_ignored", s.call);
  made("rope_queries_early", turned_call(s.call, 50, -1));
  made("rope_queries_late", turned_call(s.call, 50, 1));
  made("rope_backwards", turned_call(s.call, 50, 0, 0, 0, -1));
  made("rope_theta_10000", turned_call(s.call, 10000, 0));
  reference::Call other = turned_call(s.call, 50, 0);
  other.k = s.call.k;
  made("rope_on_queries_alone", other);
  // Columns 0 2 1 3 have the neighbours where the halves were paired, in q and k alike.
  other = s.call;
  for (Numbers* rows : {&other.q, &other.k}) {
    for (At at = 0; at < rows->size(); at += 4) std::swap((*rows)[at + 1], (*rows)[at + 2]);
  }
  made("rope_neighbours", turned_call(other, 50, 0));

  give_past(s, 3);
  made("rope_past_not_counted", turned_call(s.call, 50, 0, -3, 3));
  made("rope_past_again", turned_call(s.call, 50, 3));
}

void make_linear_biases(Workshop& shop) {
  const auto made = [&](const std::string& name, At heads,
                        const std::function<double(double h)>& slope) {
    Situation s(5, 7, 4, 2, 2, heads, 2);
    s.options.positions.alibi = true;
    s.call.bias = [=](At, At h, At i, At j) {
      return -slope(static_cast<double>(h)) *
             std::abs(static_cast<double>(i) - static_cast<double>(j));
    };
    shop.made(name, s, reference::attend(s.call).output);
  };
  made("alibi_ignored", 4, [](double) { return 0.0; });
  made("alibi_heads_reversed", 4, [](double h) { return std::pow(2, -2 * (4 - h)); });
  made("alibi_plain_slopes", 6, [](double h) { return std::pow(2, -8 * (h + 1) / 6); });
  made("alibi_scaled", 4, [](double h) { return std::pow(2, -2 * (h + 1)) / 2; });
  made("alibi_added", 4, [](double h) { return -std::pow(2, -2 * (h + 1)); });
}

void make_swaps(Workshop& shop) {
  Situation s(5, 7, 3, 3);
  Situation exchanged = s;
  std::swap(exchanged.call.k, exchanged.call.v);
  shop.made("k_v_swapped", s, reference::attend(exchanged.call).output);
  Situation alike(5, 5, 3, 2, 2, 4, 4);
  exchanged = alike;
  std::swap(exchanged.call.q, exchanged.call.k);
  shop.made("q_k_swapped", alike, reference::attend(exchanged.call).output);
}

void make_dropouts(Workshop& shop) {
  Situation s(5, 7, 3, 7);
  s.options.scores.dropout = .3;
  s.options.run.seed = 9;
  shop.made("dropout_ignored", s, reference::attend(s.call).output);
  // Values that are the identity give the weights back.
  Situation identity = s;
  identity.call.v.assign(identity.call.v.size(), 0);
  for (At at = 0; at < identity.call.v.size(); at += 7) identity.call.v[at + at / 7 % 7] = 1;
  identity.give();
  AttendOptions options;
  options.query_key = identity.options.query_key;
  options.value = identity.options.value;
  options.scores = s.options.scores;
  options.run = s.options.run;
  Numbers dropped = values_of(attend(options, {}).output);
  for (double& weight : dropped) weight *= .7;
  shop.made("dropout_unscaled", s, mix(s.call, dropped));
}

void make_rounded(Workshop& shop) {
  const Situation s(9, 40, 32, 4);
  shop.made("float16_accumulation", s, attend_in<Float16>(s.call));
  shop.made("bfloat16_accumulation", s, attend_in<BFloat16>(s.call));
}

std::vector<Made> made_on_purpose() {
  Workshop shop;
  for (const auto make : {make_scales, make_diagonals, make_windows, make_past_and_lengths,
                          make_mask_files, make_unmasked, make_hidden, make_empty_rows,
                          make_axes_and_heads, make_layouts, make_softcaps, make_rotations,
                          make_linear_biases, make_swaps, make_dropouts, make_rounded}) {
    make(shop);
  }
  return shop.all();
}

TEST_CASE("every mistake that is made on purpose is named, alone") {
  std::set<std::string> made;
  for (const Made& one : made_on_purpose()) {
    INFO(one.name);
    const DiagnoseResult result = diagnose(one.options, {});
    INFO(result.verdict);
    made.insert(one.name);
    CHECK(result.found == std::vector<std::string>{one.name});
    CHECK_FALSE(result.equal);
    REQUIRE(result.rows.size() > 2);
    CHECK(result.rows[0].mistake == "correct");
    CHECK_FALSE(result.rows[0].explains);
    CHECK(result.rows[0].rows_apart > 0);
    CHECK(result.rows[1].mistake == one.name);
    CHECK(result.rows[1].rank == 1);
    CHECK(result.rows[1].explains);
    CHECK(result.departs_from == "correct");
  }
  std::set<std::string> all;
  for (const Mistake& mistake : all_mistakes()) all.emplace(mistake.name);
  CHECK(made == all);
}

TEST_CASE("sentences of mistakes hold the numbers of the call") {
  for (const Made& one : made_on_purpose()) {
    const std::string verdict = diagnose(one.options, {}).verdict;
    INFO(verdict);
    CHECK(verdict.find('{') == std::string::npos);
    if (one.name == "bottom_right") {
      CHECK(verdict.find("equals attention with the diagonal bottom-right to ") == 0);
      CHECK(verdict.find("; you asked for top-left") != std::string::npos);
    }
    if (one.name == "default_scale") {
      CHECK(verdict.find("the scale 1/sqrt(d_k) = 0.5774 to ") != std::string::npos);
      CHECK(verdict.find("you asked for the scale 0.7") != std::string::npos);
    }
    if (one.name == "window_left_one_less") {
      CHECK(verdict.find("a window of 2 keys to the left") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace attnlab
