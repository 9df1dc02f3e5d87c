#include "attnlab/stats/scaling.h"

#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

struct Name {
  ScalingKind kind;
  std::string_view text;
  bool has_parameter;
};

constexpr std::array kNames = {
    Name{ScalingKind::none, "none", false},
    Name{ScalingKind::inv_sqrt_d, "inv_sqrt_d", false},
    Name{ScalingKind::inv_d, "inv_d", false},
    Name{ScalingKind::inv_sqrt_d_sigma2, "inv_sqrt_d_sigma2", false},
    Name{ScalingKind::log_n_over_sqrt_d, "log_n_over_sqrt_d", false},
    Name{ScalingKind::critical, "critical", false},
    Name{ScalingKind::scalable_softmax, "scalable_softmax", true},
    Name{ScalingKind::qk_norm, "qk_norm", true},
    Name{ScalingKind::cosine, "cosine", true},
    Name{ScalingKind::softcap, "softcap", true},
};

std::optional<double> whole_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

[[noreturn]] void refuse(std::string_view text, const std::string& rule) {
  throw InputError("", "scaling", text, rule);
}

// E C^2 tanh^2(z / C) for z ~ N(0, s^2): the trapezoid rule; tanh has its poles at pi C/2.
double capped_variance(double s, double cap) {
  const double ratio = s / cap;
  const double step = std::min(0.25, 0.15 / ratio);
  double sum = 0;
  for (double x = step; x < 9; x += step) {
    const double t = std::tanh(ratio * x);
    sum += 2 * t * t * std::exp(-x * x / 2);
  }
  return cap * cap * sum * step / std::sqrt(2 * std::numbers::pi);
}

}  // namespace

Scaling parse_scaling(std::string_view text) {
  if (const std::optional<double> factor = whole_number(text)) {
    return {ScalingKind::number, *factor};
  }
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const Name& known : kNames) {
    if (known.text != name) continue;
    if (!known.has_parameter) {
      if (colon != std::string_view::npos) refuse(text, std::string(name) + " takes no value");
      return {known.kind, 0};
    }
    const std::optional<double> parameter =
        colon == std::string_view::npos ? std::nullopt : whole_number(text.substr(colon + 1));
    if (!parameter || !(*parameter > 0)) {
      refuse(text,
             std::string(name) + " needs a positive number, as in " + std::string(name) + ":1.5");
    }
    return {known.kind, *parameter};
  }
  std::vector<std::string> names;
  names.reserve(kNames.size());
  for (const Name& known : kNames) names.emplace_back(known.text);
  const std::string nearest = nearest_name(name, names);
  refuse(text, nearest.empty() ? "must be a number or the name of a scaling"
                               : "did you mean " + nearest + "?");
}

std::string scaling_name(const Scaling& scaling) {
  if (scaling.kind == ScalingKind::number) return shortest(scaling.parameter);
  for (const Name& known : kNames) {
    if (known.kind != scaling.kind) continue;
    std::string name(known.text);
    return known.has_parameter ? name + ":" + shortest(scaling.parameter) : name;
  }
  return {};
}

std::optional<double> scaling_factor(const Scaling& scaling, double d, std::uint64_t n,
                                     double sigma) {
  const double log_n = std::log(static_cast<double>(n));
  switch (scaling.kind) {
    case ScalingKind::none:
      return 1;
    case ScalingKind::inv_sqrt_d:
      return 1 / std::sqrt(d);
    case ScalingKind::inv_d:
      return 1 / d;
    case ScalingKind::inv_sqrt_d_sigma2:
      return 1 / (std::sqrt(d) * sigma * sigma);
    case ScalingKind::log_n_over_sqrt_d:
      return log_n / std::sqrt(d);
    case ScalingKind::critical:
      return std::sqrt(2 * log_n / d);
    case ScalingKind::scalable_softmax:
      return scaling.parameter * log_n / std::sqrt(d);
    case ScalingKind::number:
      return scaling.parameter;
    case ScalingKind::qk_norm:
    case ScalingKind::cosine:
    case ScalingKind::softcap:
      break;
  }
  return std::nullopt;
}

std::optional<double> variance_divisor(const Scaling& scaling, double d, std::uint64_t n,
                                       double sigma) {
  const double log_n = std::log(static_cast<double>(n));
  const double sigma4 = sigma * sigma * (sigma * sigma);
  switch (scaling.kind) {
    case ScalingKind::none:
      return 1;
    case ScalingKind::inv_sqrt_d:
      return d;
    case ScalingKind::inv_d:
      return d * d;
    case ScalingKind::inv_sqrt_d_sigma2:
      return d * sigma4;
    case ScalingKind::log_n_over_sqrt_d:
      return d / (log_n * log_n);
    case ScalingKind::critical:
      return d / (2 * log_n);
    case ScalingKind::scalable_softmax:
      return d / (scaling.parameter * scaling.parameter * log_n * log_n);
    case ScalingKind::number:
      return 1 / (scaling.parameter * scaling.parameter);
    case ScalingKind::qk_norm:
    case ScalingKind::cosine:
    case ScalingKind::softcap:
      break;
  }
  return std::nullopt;
}

double logit_variance(const Scaling& scaling, double d, std::uint64_t n, double sigma) {
  const double sigma2 = sigma * sigma;
  if (const std::optional<double> divisor = variance_divisor(scaling, d, n, sigma)) {
    return d * sigma2 * sigma2 / *divisor;
  }
  if (scaling.kind == ScalingKind::softcap) return capped_variance(sigma2, scaling.parameter);
  return scaling.parameter * scaling.parameter / d;
}

bool has_normal_logits(const Scaling& scaling) {
  return scaling.kind != ScalingKind::qk_norm && scaling.kind != ScalingKind::cosine &&
         scaling.kind != ScalingKind::softcap;
}

}  // namespace attnlab
