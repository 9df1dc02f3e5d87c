// multi_head_backward against plain loops and against central differences, over grouped heads,
// biases, a past, keys of the layer's own and every combination of masks and options.

#include "attnlab/attention/multi_head_backward.h"

#include "attention/drawn_layer.h"

namespace attnlab {
namespace {

using test::Case;
using test::close;
using test::differentiate;
using test::doubles;
using test::draw_layer;
using test::DrawnLayer;
using test::forward;
using test::Named;
using test::OwnKeys;
using test::tensors_of;
using test::with_options;

using Doubles = std::vector<double>;

// ---- plain loops --------------------------------------------------------------------------------

// Element (b, h, i, x) of [batch, heads, n, width] from column h width + x of rows [batch n, in]
// times W.
Doubles project_by_loops(const Doubles& rows, const Tensor<double>& w,
                         const std::optional<Tensor<double>>& bias, std::size_t batch,
                         std::size_t n, std::size_t heads) {
  const auto in = static_cast<std::size_t>(w.shape()[0]);
  const auto out = static_cast<std::size_t>(w.shape()[1]), width = out / heads;
  Doubles y(batch * n * out);
  for (std::size_t r = 0; r < batch * n; ++r) {
    for (std::size_t c = 0; c < out; ++c) {
      double sum = bias ? bias->data()[c] : 0;
      for (std::size_t x = 0; x < in; ++x) sum += rows[r * in + x] * w.data()[x * out + c];
      y[((r / n * heads + c / width) * n + r % n) * width + c % width] = sum;
    }
  }
  return y;
}

// What one projection y = x W + b passes on of the gradient of y.
struct Passed {
  Doubles x, w, b;
};

// grad_y [batch, heads, n, width].
Passed pass_back(const Doubles& rows, const Tensor<double>& w, const Doubles& grad_y,
                 std::size_t batch, std::size_t n, std::size_t heads) {
  const auto in = static_cast<std::size_t>(w.shape()[0]);
  const auto out = static_cast<std::size_t>(w.shape()[1]), width = out / heads;
  Passed passed{Doubles(rows.size()), Doubles(in * out), Doubles(out)};
  for (std::size_t r = 0; r < batch * n; ++r) {
    for (std::size_t c = 0; c < out; ++c) {
      const double g = grad_y[((r / n * heads + c / width) * n + r % n) * width + c % width];
      passed.b[c] += g;
      for (std::size_t x = 0; x < in; ++x) {
        passed.x[r * in + x] += g * w.data()[x * out + c];
        passed.w[x * out + c] += g * rows[r * in + x];
      }
    }
  }
  return passed;
}

// What stands in [batch, heads, n, width] before and from row `at` on of each matrix.
std::pair<Doubles, Doubles> cut(const Doubles& all, std::size_t at, std::size_t n,
                                std::size_t width) {
  std::pair<Doubles, Doubles> parts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    (i / width % n < at ? parts.first : parts.second).push_back(all[i]);
  }
  return parts;
}

// Rows `after` behind the rows `before` of each of `matrices` matrices.
Doubles joined(const Doubles& before, const Doubles& after, std::size_t matrices) {
  Doubles all;
  for (std::size_t i = 0; i < matrices; ++i) {
    for (const Doubles* part : {&before, &after}) {
      const auto size = static_cast<std::ptrdiff_t>(part->size() / matrices);
      const auto first = part->begin() + static_cast<std::ptrdiff_t>(i) * size;
      all.insert(all.end(), first, first + size);
    }
  }
  return all;
}

// [batch, heads, n, width] as rows [batch n, heads width].
Doubles merged(const Doubles& split, std::size_t batch, std::size_t n, std::size_t heads) {
  Doubles rows(split.size());
  const std::size_t width = split.size() / (batch * n * heads);
  for (std::size_t i = 0; i < split.size(); ++i) {
    const std::size_t x = i % width, row = i / width % n, h = i / width / n % heads;
    rows[((i / width / n / heads * n + row) * heads + h) * width + x] = split[i];
  }
  return rows;
}

MultiHeadParams<double> wide(const MultiHeadParams<float>& from) {
  const auto cast = [](const Tensor<float>& t) { return AnyTensor(t).cast<double>(); };
  MultiHeadParams<double> to{from.heads,
                             from.kv_heads,
                             cast(from.w_q),
                             cast(from.w_k),
                             cast(from.w_v),
                             cast(from.w_o),
                             {},
                             {},
                             {},
                             {},
                             {},
                             {}};
  if (from.b_q) {
    to.b_q = cast(*from.b_q), to.b_k = cast(*from.b_k);
    to.b_v = cast(*from.b_v), to.b_o = cast(*from.b_o);
  }
  to.add_zero_attn = from.add_zero_attn;
  if (from.bias_k) to.bias_k = cast(*from.bias_k), to.bias_v = cast(*from.bias_v);
  return to;
}
const MultiHeadParams<double>& wide(const MultiHeadParams<double>& from) { return from; }

// The rows of the layer's own in each matrix: `learnt` [kv_heads width], if there is one, and
// zeros.
Doubles own_rows(const std::optional<Tensor<double>>& learnt, bool zero, std::size_t batch,
                 std::size_t kv_heads, std::size_t width) {
  Doubles rows;
  for (std::size_t i = 0; i < batch * kv_heads; ++i) {
    if (learnt) {
      const double* row = learnt->data() + i % kv_heads * width;
      rows.insert(rows.end(), row, row + width);
    }
    if (zero) rows.insert(rows.end(), width, 0.0);
  }
  return rows;
}

// The first of those rows, summed over the batch.
Doubles sum_of_first(const Doubles& rows, std::size_t batch, std::size_t kv_heads,
                     std::size_t width) {
  const std::size_t each = rows.size() / (batch * kv_heads);
  Doubles sum(each == 0 ? 0 : kv_heads * width);
  for (std::size_t i = 0; i < batch * sum.size(); ++i) {
    sum[i % sum.size()] += rows[i / width * each + i % width];
  }
  return sum;
}

template <class T>
void check_loops(const Case& c, bool bias, Kernel kernel, double tolerance, Index past = -1,
                 OwnKeys own = {}) {
  INFO(test::name_of(c) << (bias ? " bias" : "") << " past " << past << (own.bias ? " bias_k" : "")
                        << (own.zero ? " zero" : ""));
  DrawnLayer<T> drawn = draw_layer<T>(c, bias, past, own);
  drawn.attention.settings.kernel = kernel;
  MultiHeadGradients<T> got = differentiate(drawn);

  const MultiHeadParams<double> params = wide(drawn.params);
  reference::Call call = drawn.attention.call;
  const std::size_t batch = call.batch, n = call.n, matrices = batch * call.kv_heads;
  const std::size_t p = past < 0 ? 0 : static_cast<std::size_t>(past), m = call.m - p;
  const Past<T> before = drawn.past.value_or(Past<T>{Tensor<T>(Shape{0}), Tensor<T>(Shape{0})});
  const Doubles query = doubles(drawn.query), key = doubles(drawn.key);
  const Doubles value = doubles(drawn.value);
  call.q = project_by_loops(query, params.w_q, params.b_q, batch, n, call.heads);
  call.k = joined(doubles(before.k),
                  project_by_loops(key, params.w_k, params.b_k, batch, m, call.kv_heads), matrices);
  call.v =
      joined(doubles(before.v),
             project_by_loops(value, params.w_v, params.b_v, batch, m, call.kv_heads), matrices);
  // Behind all others, as torch has them; no mask is about them.
  const std::size_t masked = call.m;
  call.m += static_cast<std::size_t>(params.own_keys());
  call.k =
      joined(call.k, own_rows(params.bias_k, own.zero, batch, call.kv_heads, call.d_k), matrices);
  call.v =
      joined(call.v, own_rows(params.bias_v, own.zero, batch, call.kv_heads, call.d_v), matrices);
  call.sees = [sees = call.sees, masked](std::size_t b, std::size_t h, std::size_t i,
                                         std::size_t j) { return j >= masked || sees(b, h, i, j); };
  call.bias = [added = call.bias, masked](std::size_t b, std::size_t h, std::size_t i,
                                          std::size_t j) {
    return j >= masked ? 0 : added(b, h, i, j);
  };
  const reference::Result attention = reference::attend(call);
  const MultiHeadResult<T> layer = forward(drawn, test::kAllMatrices);
  const double scores = tolerance * static_cast<double>(c.m);
  CHECK(close(*layer.attention.raw_scores, attention.raw_scores, scores));
  CHECK(close(*layer.attention.masked_scores, attention.masked_scores, scores));
  CHECK(close(*layer.attention.weights, attention.weights, scores));
  const Doubles concat = merged(attention.output, batch, n, call.heads);
  const Passed o = pass_back(concat, params.w_o, doubles(drawn.grad_output), batch, n, 1);
  // The gradient of the heads, from rows back to heads.
  Tensor<double> identity({params.w_o.shape()[0], params.w_o.shape()[0]});
  identity.matrix().setIdentity();
  const Doubles grad_heads = project_by_loops(o.x, identity, std::nullopt, batch, n, call.heads);
  const reference::Gradients g = reference::differentiate(call, grad_heads);
  const Passed q = pass_back(query, params.w_q, g.grad_q, batch, n, call.heads);
  const auto [given_k, own_k] = cut(g.grad_k, masked, call.m, call.d_k);
  const auto [given_v, own_v] = cut(g.grad_v, masked, call.m, call.d_v);
  const auto [past_k, grad_k] = cut(given_k, p, masked, call.d_k);
  const auto [past_v, grad_v] = cut(given_v, p, masked, call.d_v);
  const Doubles bias_k = sum_of_first(own_k, batch, call.kv_heads, call.d_k);
  const Doubles bias_v = sum_of_first(own_v, batch, call.kv_heads, call.d_v);
  const Passed k = pass_back(key, params.w_k, grad_k, batch, m, call.kv_heads);
  const Passed v = pass_back(value, params.w_v, grad_v, batch, m, call.kv_heads);

  std::vector<const Doubles*> expected = {&q.x, &k.x, &v.x, &q.w, &k.w, &v.w, &o.w};
  if (past >= 0) expected.insert(expected.end(), {&past_k, &past_v});
  if (own.bias) expected.insert(expected.end(), {&bias_k, &bias_v});
  if (bias) expected.insert(expected.end(), {&q.b, &k.b, &v.b, &o.b});
  const double size = tolerance * static_cast<double>((c.n + c.m) * c.heads * c.batch);
  const auto tensors = tensors_of(drawn, got);
  REQUIRE(tensors.size() == expected.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    INFO(tensors[i].name);
    REQUIRE(tensors[i].gradient->has_value());
    CHECK((*tensors[i].gradient)->shape() == tensors[i].at->shape());
    CHECK(close(**tensors[i].gradient, *expected[i], size));
  }
  CHECK(got.grad_b_q.has_value() == bias);
  CHECK(got.grad_b_o.has_value() == bias);
}

TEST_CASE("gradients of a layer equal plain loops under every combination of options") {
  for (int options = 0; options < 64; ++options) {
    for (const auto& [heads, kv_heads] : {std::pair<Index, Index>{1, 1}, {4, 2}, {3, 1}}) {
      for (const auto& [n, m] : {std::pair<Index, Index>{1, 7}, {5, 3}}) {
        const Case sizes{
            .batch = 2, .heads = heads, .kv_heads = kv_heads, .n = n, .m = m, .d_k = 3, .d_v = 2};
        const Case c = with_options(sizes, options);
        const bool bias = (options ^ n) % 2 == 1;
        check_loops<double>(c, bias, Kernel::automatic, 1e-14);
        check_loops<double>(c, !bias, Kernel::full, 1e-14);
        check_loops<float>(c, bias, Kernel::automatic, 5e-6);
      }
    }
  }
}

TEST_CASE("gradients of a layer with a past equal plain loops, the past's its own") {
  for (int options = 0; options < 64; ++options) {
    const Case sizes{.batch = 2, .heads = 4, .kv_heads = 2, .n = 3, .m = 7, .d_k = 3, .d_v = 2};
    const Case c = with_options(sizes, options);
    for (const Index past : {0, 4, 7}) {
      check_loops<double>(c, options % 2 == 1, Kernel::automatic, 1e-14, past);
      check_loops<double>(c, options % 2 == 0, Kernel::full, 1e-14, past);
    }
  }
}

TEST_CASE("keys of a layer's own are behind all others, whatever the mask, with their gradients") {
  for (int options = 0; options < 64; ++options) {
    const Case sizes{.batch = 2, .heads = 4, .kv_heads = 2, .n = 3, .m = 7, .d_k = 3, .d_v = 2};
    const Case c = with_options(sizes, options);
    for (const OwnKeys own : {OwnKeys{true, false}, {false, true}, {true, true}}) {
      const Index past = options % 3 == 0 ? -1 : 4;
      check_loops<double>(c, options % 2 == 1, Kernel::automatic, 1e-14, past, own);
      check_loops<double>(c, options % 2 == 0, Kernel::full, 1e-14, past, own);
      check_loops<float>(c, options % 2 == 1, Kernel::automatic, 5e-6, past, own);
    }
  }
}

TEST_CASE("gradients of a layer equal plain loops where products are done in pieces") {
  const Case c{.batch = 2, .heads = 4, .kv_heads = 2, .n = 150, .m = 131, .d_k = 9, .d_v = 33};
  for (const Kernel kernel : {Kernel::tiled, Kernel::full}) {
    check_loops<double>(c, true, kernel, 1e-14);
    check_loops<float>(c, true, kernel, 5e-6);
  }
}

// ---- central differences ------------------------------------------------------------------------

// ||gradient - differences|| <= 1e-8 ||differences|| of one tensor, `moved`, which is part of `at`.
void check_differences(DrawnLayer<double>& at, Tensor<double>& moved,
                       const Tensor<double>& gradient) {
  const double h = 1e-5;
  double squares = 0, error_squares = 0;
  for (Index i = 0; i < gradient.size(); ++i) {
    const double centre = moved[i];
    moved[i] = centre + h;
    const Tensor<double> above = forward(at).output;
    moved[i] = centre - h;
    const Tensor<double> below = forward(at).output;
    moved[i] = centre;
    double difference = 0;
    for (Index o = 0; o < above.size(); ++o) {
      difference += at.grad_output[o] * (above[o] - below[o]);
    }
    difference /= 2 * h;
    squares += difference * difference;
    error_squares += (gradient[i] - difference) * (gradient[i] - difference);
  }
  // A gradient of 0 leaves what rounding does to the differences.
  CHECK(std::sqrt(error_squares) <= std::max(1e-8 * std::sqrt(squares), 1e-9));
}

TEST_CASE("gradients of a layer are those of central differences") {
  for (int options = 0; options < 128; ++options) {
    const Case sizes{.batch = 2,
                     .heads = 4,
                     .kv_heads = options % 3 == 0 ? 4 : 2,
                     .n = 3,
                     .m = 4,
                     .d_k = 2,
                     .d_v = 3};
    const Case c = with_options(sizes, options);
    INFO(test::name_of(c));
    const OwnKeys own{options % 3 == 0, options % 5 == 0};
    auto layer = draw_layer<double>(c, true, options % 4 - 1, own);
    auto gradients = differentiate(layer);
    for (const Named<double>& tensor : tensors_of(layer, gradients)) {
      INFO(tensor.name);
      check_differences(layer, *tensor.at, **tensor.gradient);
    }
  }
}

}  // namespace
}  // namespace attnlab
