#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attnlab {

// What is done to a score q.k before the softmax.
enum class ScalingKind {
  none,               // 1
  inv_sqrt_d,         // 1/sqrt(d) (Vaswani et al. 2017)
  inv_d,              // 1/d (muP, Yang et al. 2022)
  inv_sqrt_d_sigma2,  // 1/(sqrt(d) sigma^2), so that the variance is 1 for any sigma
  log_n_over_sqrt_d,  // ln n / sqrt(d) (Chiang and Cholak 2022)
  critical,           // sqrt(2 ln n / d): the freezing transition
  scalable_softmax,   // S ln n / sqrt(d) (Nakanishi 2025)
  qk_norm,            // G times the cosine of q and k (Henry et al. 2020)
  cosine,             // the cosine times INVTAU (Swin V2, Liu et al. 2022)
  softcap,            // C tanh(q.k / sqrt(d) / C) (Gemma 2)
  number,             // a given factor
};

struct Scaling {
  ScalingKind kind = ScalingKind::inv_sqrt_d;
  double parameter = 0;  // S, G, INVTAU, C or the factor

  friend bool operator==(const Scaling&, const Scaling&) = default;
};

// "inv_sqrt_d", "scalable_softmax:0.43", "0.125". Throws InputError naming the nearest name.
Scaling parse_scaling(std::string_view text);
// The same text back: the shortest that parse_scaling reads as the same value.
std::string scaling_name(const Scaling& scaling);

// The factor on q.k where the scaling is one; nothing for qk_norm, cosine and softcap. sigma is the
// entries' standard deviation.
std::optional<double> scaling_factor(const Scaling& scaling, double d, std::uint64_t n,
                                     double sigma);

// What a score's variance is divided by where the scaling is a factor, 1 / factor^2 without the
// rounding of a root: d for inv_sqrt_d.
std::optional<double> variance_divisor(const Scaling& scaling, double d, std::uint64_t n,
                                       double sigma);

// The variance of a logit for entries of mean 0 and standard deviation sigma, independent: factor^2
// d sigma^4; G^2/d for qk_norm and cosine; for softcap that of C tanh(z / C), z ~ N(0, sigma^4).
double logit_variance(const Scaling& scaling, double d, std::uint64_t n, double sigma);

// Whether given the query the logits are normal, for normal entries, so that softmax_theory holds:
// where the scaling is a factor. A cosine is bounded, and so is a capped logit.
bool has_normal_logits(const Scaling& scaling);

}  // namespace attnlab
