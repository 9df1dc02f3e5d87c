// multi_head_backward against plain loops and against central differences, over grouped heads,
// biases and every combination of masks and options.

#include "attnlab/attention/multi_head_backward.h"

#include <array>

#include "attention/layer_case.h"
#include "attention/reference_case.h"

namespace attnlab {
namespace {

using test::Case;
using test::close;
using test::doubles;

using Doubles = std::vector<double>;

// Inputs, layer, mask and cotangent of one backward pass.
template <class T>
struct DrawnLayer {
  Tensor<T> query, key, value, grad_output;
  MultiHeadParams<T> params;
  test::DrawnCase<T> attention;  // its mask and settings, and what the loops call them
};

MultiHeadShape shape_of(const Case& c, bool bias) {
  return {.d_query = 7,
          .d_key = 5,
          .d_value = 6,
          .d_output = 4,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .d_k = c.d_k,
          .d_v = c.d_v,
          .bias = bias};
}

template <class T>
DrawnLayer<T> draw_layer(const Case& c, bool bias) {
  test::Numbers numbers(static_cast<std::uint64_t>(c.n * 10 + c.m));
  return {.query = numbers.tensor<T>({c.batch, c.n, 7}),
          .key = numbers.tensor<T>({c.batch, c.m, 5}),
          .value = numbers.tensor<T>({c.batch, c.m, 6}),
          .grad_output = numbers.tensor<T>({c.batch, c.n, 4}),
          .params = test::some_params<T>(shape_of(c, bias)),
          .attention = test::draw_case<T>(c)};
}

template <class T>
MultiHeadResult<T> forward(const DrawnLayer<T>& at) {
  return multi_head(at.query, at.key, at.value, at.params, at.attention.mask,
                    at.attention.settings);
}

template <class T>
MultiHeadGradients<T> differentiate(const DrawnLayer<T>& at,
                                    const Request& want = all_layer_gradients()) {
  return multi_head_backward(at.query, at.key, at.value, at.params, forward(at), at.grad_output,
                             at.attention.mask, at.attention.settings, want);
}

// A layer's tensor, where it is kept and where its gradient is.
template <class T>
struct Named {
  const char* name;
  Tensor<T>* at;
  std::optional<Tensor<T>>* gradient;
};

template <class T>
std::vector<Named<T>> tensors_of(DrawnLayer<T>& layer, MultiHeadGradients<T>& g) {
  MultiHeadParams<T>& p = layer.params;
  std::vector<Named<T>> all = {{"query", &layer.query, &g.grad_query},
                               {"key", &layer.key, &g.grad_key},
                               {"value", &layer.value, &g.grad_value},
                               {"w_q", &p.w_q, &g.grad_w_q},
                               {"w_k", &p.w_k, &g.grad_w_k},
                               {"w_v", &p.w_v, &g.grad_w_v},
                               {"w_o", &p.w_o, &g.grad_w_o}};
  if (!p.b_q) return all;
  all.insert(all.end(), {{"b_q", &*p.b_q, &g.grad_b_q},
                         {"b_k", &*p.b_k, &g.grad_b_k},
                         {"b_v", &*p.b_v, &g.grad_b_v},
                         {"b_o", &*p.b_o, &g.grad_b_o}});
  return all;
}

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
                             {}};
  if (from.b_q) {
    to.b_q = cast(*from.b_q), to.b_k = cast(*from.b_k);
    to.b_v = cast(*from.b_v), to.b_o = cast(*from.b_o);
  }
  return to;
}
const MultiHeadParams<double>& wide(const MultiHeadParams<double>& from) { return from; }

template <class T>
void check_loops(const Case& c, bool bias, Kernel kernel, double tolerance) {
  INFO(test::name_of(c) << (bias ? " bias" : ""));
  DrawnLayer<T> drawn = draw_layer<T>(c, bias);
  drawn.attention.settings.kernel = kernel;
  MultiHeadGradients<T> got = differentiate(drawn);

  const MultiHeadParams<double> p = wide(drawn.params);
  reference::Call call = drawn.attention.call;
  const std::size_t batch = call.batch, n = call.n, m = call.m;
  const Doubles query = doubles(drawn.query), key = doubles(drawn.key);
  const Doubles value = doubles(drawn.value);
  call.q = project_by_loops(query, p.w_q, p.b_q, batch, n, call.heads);
  call.k = project_by_loops(key, p.w_k, p.b_k, batch, m, call.kv_heads);
  call.v = project_by_loops(value, p.w_v, p.b_v, batch, m, call.kv_heads);
  const Doubles concat = merged(reference::attend(call).output, batch, n, call.heads);
  const Passed o = pass_back(concat, p.w_o, doubles(drawn.grad_output), batch, n, 1);
  // The gradient of the heads, from rows back to heads.
  Tensor<double> identity({p.w_o.shape()[0], p.w_o.shape()[0]});
  identity.matrix().setIdentity();
  const Doubles grad_heads = project_by_loops(o.x, identity, std::nullopt, batch, n, call.heads);
  const reference::Gradients g = reference::differentiate(call, grad_heads);
  const Passed q = pass_back(query, p.w_q, g.grad_q, batch, n, call.heads);
  const Passed k = pass_back(key, p.w_k, g.grad_k, batch, m, call.kv_heads);
  const Passed v = pass_back(value, p.w_v, g.grad_v, batch, m, call.kv_heads);

  const std::vector<const Doubles*> expected = {&q.x, &k.x, &v.x, &q.w, &k.w, &v.w,
                                                &o.w, &q.b, &k.b, &v.b, &o.b};
  const double size = tolerance * static_cast<double>((c.n + c.m) * c.heads * c.batch);
  const auto tensors = tensors_of(drawn, got);
  CHECK(tensors.size() == (bias ? 11 : 7));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    INFO(tensors[i].name);
    REQUIRE(tensors[i].gradient->has_value());
    CHECK((*tensors[i].gradient)->shape() == tensors[i].at->shape());
    CHECK(close(**tensors[i].gradient, *expected[i], size));
  }
  CHECK(got.grad_b_q.has_value() == bias);
  CHECK(got.grad_b_o.has_value() == bias);
}

Case with_options(Case c, int options) {
  c.causal = (options & 1) != 0;
  c.window = (options & 2) != 0;
  c.lengths = (options & 4) != 0;
  c.boolean = (options & 8) != 0;
  c.additive = (options & 16) != 0;
  c.softcap = (options & 32) != 0;
  c.dropout = (options & 64) != 0;
  return c;
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
    auto layer = draw_layer<double>(c, true);
    auto gradients = differentiate(layer);
    for (const Named<double>& tensor : tensors_of(layer, gradients)) {
      INFO(tensor.name);
      check_differences(layer, *tensor.at, **tensor.gradient);
    }
  }
}

// ---- what is particular to a layer --------------------------------------------------------------

template <class T>
double largest(const Tensor<T>& t) {
  double most = 0;
  for (const T value : t.values()) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

TEST_CASE("a key bias has gradient 0, unless there is a softcap") {
  for (int options = 0; options < 128; ++options) {
    const Case sizes{.batch = 2, .heads = 4, .kv_heads = 2, .n = 6, .m = 9, .d_k = 3, .d_v = 2};
    const Case c = with_options(sizes, options);
    INFO(test::name_of(c));
    const auto gradients = differentiate(draw_layer<double>(c, true));
    if (c.softcap) {
      CHECK(largest(*gradients.grad_b_k) > 1e-3);
    } else {
      CHECK(largest(*gradients.grad_b_k) < 1e-13);
      CHECK(largest(*gradients.grad_w_k) > 1e-3);
    }
    const auto narrow = differentiate(draw_layer<float>(c, true));
    if (!c.softcap) CHECK(largest(*narrow.grad_b_k) < 1e-5);
  }
}

TEST_CASE("the gradient of an input given twice is the sum of both") {
  const Case c{
      .batch = 2, .heads = 2, .kv_heads = 2, .n = 4, .m = 4, .d_k = 3, .d_v = 2, .causal = true};
  auto layer = draw_layer<double>(c, true);
  MultiHeadShape shape = shape_of(c, true);
  shape.d_key = shape.d_value = 7;
  layer.params = test::some_params<double>(shape);
  layer.key = layer.value = layer.query;
  const auto gradients = differentiate(layer);
  const double h = 1e-5;
  for (Index i = 0; i < layer.query.size(); ++i) {
    const auto output = [&](double step) {
      DrawnLayer<double> moved = layer;
      moved.query[i] += step;
      moved.key = moved.value = moved.query;
      return forward(moved).output;
    };
    const auto above = output(h), below = output(-h);
    double difference = 0;
    for (Index o = 0; o < above.size(); ++o) {
      difference += layer.grad_output[o] * (above[o] - below[o]) / (2 * h);
    }
    const double sum =
        (*gradients.grad_query)[i] + (*gradients.grad_key)[i] + (*gradients.grad_value)[i];
    CHECK(sum == Approx(difference).margin(1e-8));
  }
}

template <class T>
void check_bits(Kernel kernel) {
  const Case c{.batch = 2,
               .heads = 4,
               .kv_heads = 2,
               .n = 300,
               .m = 270,
               .d_k = 20,
               .d_v = 40,
               .causal = true,
               .softcap = true,
               .dropout = true};
  DrawnLayer<T> layer = draw_layer<T>(c, true);
  layer.attention.settings.kernel = kernel;
  layer.attention.settings.threads = 1;
  MultiHeadGradients<T> one = differentiate(layer);
  const auto expected = tensors_of(layer, one);
  for (const Index threads : {0, 2, 3, 8}) {
    layer.attention.settings.threads = threads;
    MultiHeadGradients<T> many = differentiate(layer);
    const auto got = tensors_of(layer, many);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(got[i].name);
      CHECK(test::same_bits(**got[i].gradient, **expected[i].gradient));
    }
  }
  for (std::size_t wanted = 0; wanted < expected.size(); ++wanted) {
    const std::string name = std::string("grad_") + expected[wanted].name;
    INFO(name);
    MultiHeadGradients<T> alone = differentiate(layer, {name});
    const auto got = tensors_of(layer, alone);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].gradient->has_value() == (i == wanted));
    }
    CHECK(test::same_bits(**got[wanted].gradient, **expected[wanted].gradient));
  }
}

TEST_CASE("neither threads nor what is asked for change a bit of a layer's gradient") {
  check_bits<float>(Kernel::automatic);
  check_bits<double>(Kernel::full);
}

bool same_gradients(DrawnLayer<double>& layer, MultiHeadGradients<double>& a,
                    MultiHeadGradients<double>& b) {
  const auto first = tensors_of(layer, a), second = tensors_of(layer, b);
  for (std::size_t i = 0; i < first.size(); ++i) {
    UNSCOPED_INFO(first[i].name);
    if (!test::same_bits(**first[i].gradient, **second[i].gradient)) return false;
  }
  return true;
}

TEST_CASE("what the mask hides of an input does not touch a layer's gradients") {
  const Case c{.batch = 2, .heads = 4, .kv_heads = 2, .n = 5, .m = 6, .d_k = 3, .d_v = 2};
  for (const double garbage : {test::kNan, test::kInfinity}) {
    auto layer = draw_layer<double>(c, true);
    layer.attention.mask.set_key_lengths({4, 6});
    auto clean = differentiate(layer);
    auto poisoned = layer;
    poisoned.key.matrix(0).bottomRows(2).setConstant(garbage);
    poisoned.value.matrix(0).bottomRows(2).setConstant(-garbage);
    auto got = differentiate(poisoned);
    CHECK(same_gradients(layer, clean, got));
    CHECK((got.grad_key->matrix(0).bottomRows(2).array() == 0).all());

    // A query that sees nothing.
    Tensor<bool> may_attend({5, 1}, true);
    may_attend[3] = false;
    layer.attention.mask.set_boolean(may_attend);
    poisoned.attention.mask.set_boolean(may_attend);
    clean = differentiate(layer);
    poisoned.query.matrix(1).row(3).setConstant(garbage);
    got = differentiate(poisoned);
    CHECK(same_gradients(layer, clean, got));
  }
}

TEST_CASE("what is not finite reaches the weights of the heads that see it, and no others") {
  const Case c{.batch = 1, .heads = 4, .kv_heads = 2, .n = 3, .m = 5, .d_k = 3, .d_v = 2};
  auto layer = draw_layer<double>(c, true);
  // Key 4 is seen by query 1 of head 3 alone, which uses the second key/value head.
  Tensor<bool> may_attend({1, 4, 3, 5}, true);
  for (Index h = 0; h < 4; ++h) {
    for (Index i = 0; i < 3; ++i) may_attend.matrix(h)(i, 4) = h == 3 && i == 1;
  }
  layer.attention.mask.set_boolean(may_attend);
  const auto clean = differentiate(layer);
  layer.key.matrix()(4, 2) = test::kNan;
  const auto got = differentiate(layer);
  CHECK(got.grad_w_k->matrix().leftCols(3) == clean.grad_w_k->matrix().leftCols(3));
  CHECK(got.grad_w_k->matrix().rightCols(3).array().isNaN().all());
  for (Index x = 0; x < 3; ++x) CHECK((*got.grad_b_k)[x] == (*clean.grad_b_k)[x]);

  // Of a value it spoils neither weights nor the gradients of v, but what is multiplied with it.
  layer = draw_layer<double>(c, true);
  layer.attention.mask.set_boolean(may_attend);
  layer.value.matrix()(4, 5) = test::kInfinity;
  const auto grad_w_v = differentiate(layer).grad_w_v->matrix().eval();
  CHECK(grad_w_v.leftCols(2) == clean.grad_w_v->matrix().leftCols(2));
  CHECK(grad_w_v.topRows(5) == clean.grad_w_v->matrix().topRows(5));
  CHECK((grad_w_v.bottomRightCorner(1, 2).array().abs() == test::kInfinity).all());
}

TEST_CASE("layers over axes of length 0 have gradients of 0") {
  const auto shapes = [](Index batch, Index n, Index m) {
    Case c{.batch = std::max<Index>(batch, 1),
           .heads = 2,
           .kv_heads = 2,
           .n = std::max<Index>(n, 1),
           .m = std::max<Index>(m, 1),
           .d_k = 3,
           .d_v = 2};
    auto layer = draw_layer<float>(c, true);
    layer.query = Tensor<float>({batch, n, 7});
    layer.key = Tensor<float>({batch, m, 5});
    layer.value = Tensor<float>({batch, m, 6});
    layer.grad_output = Tensor<float>({batch, n, 4}, 1);
    layer.attention.mask = Mask(batch, 2, n, m);
    auto gradients = differentiate(layer);
    for (const Named<float>& tensor : tensors_of(layer, gradients)) {
      INFO(tensor.name);
      CHECK((*tensor.gradient)->shape() == tensor.at->shape());
      const bool counts_rows = std::string(tensor.name) == "b_o";
      const double expected = counts_rows ? static_cast<double>(batch * n) : 0;
      for (const float value : (*tensor.gradient)->values()) {
        CHECK(static_cast<double>(value) == expected);
      }
    }
  };
  shapes(0, 2, 3);
  shapes(1, 0, 3);
  shapes(1, 2, 0);
}

TEST_CASE("what does not fit a layer's backward pass is refused") {
  const Case c{.batch = 1, .heads = 2, .kv_heads = 2, .n = 2, .m = 3, .d_k = 3, .d_v = 2};
  const auto layer = draw_layer<float>(c, false);
  const auto refusal = [&](auto&& spoil) {
    auto spoilt = layer;
    auto result = forward(spoilt);
    spoil(spoilt, result);
    return test::error_of([&] {
      multi_head_backward(spoilt.query, spoilt.key, spoilt.value, spoilt.params, result,
                          spoilt.grad_output, spoilt.attention.mask, spoilt.attention.settings);
    });
  };
  using Layer = DrawnLayer<float>;
  using Result = MultiHeadResult<float>;
  CHECK(refusal([](Layer&, Result&) {}).empty());
  CHECK(test::says(refusal([](Layer& l, Result&) {
                     l.grad_output = Tensor<float>({1, 2, 5});
                   }),
                   {"grad_output: got [1, 2, 5]", "[1, 2, 4]"}));
  CHECK(test::says(refusal([](Layer& l, Result&) {
                     l.query = Tensor<float>({1, 2, 8});
                   }),
                   {"query: got 8 columns", "w_q"}));
  CHECK(test::says(refusal([](Layer& l, Result&) { l.attention.settings.dropout = 1; }),
                   {"dropout"}));
  const std::array<Tensor<float> Result::*, 4> parts = {&Result::q, &Result::k, &Result::v,
                                                        &Result::concat};
  for (const auto part : parts) {
    CHECK(test::says(refusal([&](Layer&, Result& r) {
                       r.*part = Tensor<float>({1, 9, 9, 9});
                     }),
                     {"forward: got [1, 9, 9, 9]", "need that of"}));
  }
}

}  // namespace
}  // namespace attnlab
