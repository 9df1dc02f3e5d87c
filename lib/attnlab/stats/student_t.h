#pragma once

namespace attnlab {

// Standard normal distribution function, and its inverse for 0 < p < 1 (0 and 1 give -+infinity).
double normal_cdf(double z);
double normal_quantile(double p);

// Student's t with df > 0 degrees of freedom, not only whole ones; infinity is the normal. Relative
// error of the distribution function (of the smaller tail) and of the quantile below 1e-12, for any
// p and any df; by the incomplete beta function (DLMF 8.17.22) and, above 10^5 degrees of freedom,
// the expansion in 1/df (Abramowitz and Stegun, 26.7.5 and 26.7.8).
double student_t_cdf(double t, double df);
double student_t_quantile(double p, double df);

// P(|T| > t) and the t that has it: what a two-sided interval of confidence 1 - p reaches to.
double student_t_two_sided(double t, double df);
double student_t_two_sided_quantile(double p, double df);

}  // namespace attnlab
