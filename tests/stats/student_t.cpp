#include "attnlab/stats/student_t.h"

#include <cmath>
#include <limits>

#include "catch.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Tail {
  double df, t, outside;
};

// P(|T| > t) in 40 digits: the incomplete beta function, and by direct integration of the density
// above 2e4 degrees of freedom.
constexpr Tail kTails[] = {
    {0.3, 0.001, 0.99954136182553767},
    {0.3, 2, 0.56426969896078275},
    {0.3, 40, 0.23112832603002543},
    {1, 0.001, 0.99936338043983888},
    {1, 1, 0.5},
    {1, 12, 0.052929352119179751},
    {2, 0.5, 0.66666666666666667},
    {2, 2, 0.18350341907227397},
    {2, 40, 0.00062441467218474064},
    {3.5, 1, 0.38133725356344554},
    {3.5, 4, 0.020920616365403724},
    {3.5, 12, 0.00057453419285612786},
    {4, 0.5, 0.64332996318186327},
    {4, 2, 0.11611652351681559},
    {4, 40, 2.3340163226012686e-6},
    {29, 1, 0.32558198801619354},
    {29, 2, 0.054943637182967189},
    {29, 12, 9.0607083331371795e-13},
    {29, 40, 6.346877329729348e-27},
    {999, 0.001, 0.9992023152180736},
    {999, 0.5, 0.61718519093028941},
    {999, 2, 0.045770616973757003},
    {999, 12, 4.3431039077162505e-31},
    {99999, 0.5, 0.61707617766542016},
    {99999, 2, 0.045502963484502473},
    {99999, 4, 6.3387998012454955e-5},
    {99999, 12, 3.7445077762403136e-33},
    {100001, 0.5, 0.61707617764341614},
    {100001, 2, 0.045502963430510994},
    {100001, 4, 6.3387997101944831e-5},
    {100001, 12, 3.7445038477126695e-33},
    {1e6, 1, 0.31731074983357813},
    {1e6, 2, 0.045500533851319208},
    {1e6, 12, 3.5716851247650913e-33},
    {1e9, 0.001, 0.99920211557237735},
    {1e9, 2, 0.045500264166313247},
    {1e9, 12, 3.552982897741145e-33},
};

TEST_CASE("the tails of Student's t are right to twelve digits for few and many degrees") {
  for (const Tail& tail : kTails) {
    INFO("df " << tail.df << ", t " << tail.t);
    CHECK(student_t_two_sided(tail.t, tail.df) == Approx(tail.outside).epsilon(1e-12));
    CHECK(student_t_cdf(-tail.t, tail.df) == Approx(tail.outside / 2).epsilon(1e-12));
    CHECK(student_t_cdf(tail.t, tail.df) == Approx(1 - tail.outside / 2).epsilon(1e-14));
  }
}

TEST_CASE("the quantile undoes the distribution function") {
  for (const Tail& tail : kTails) {
    // Where 1 - p has lost the digits of a small t there is nothing to undo.
    if (tail.outside > 0.99) continue;
    INFO("df " << tail.df << ", t " << tail.t);
    CHECK(student_t_two_sided_quantile(tail.outside, tail.df) == Approx(tail.t).epsilon(2e-12));
    CHECK(student_t_quantile(tail.outside / 2, tail.df) == Approx(-tail.t).epsilon(2e-12));
  }
}

TEST_CASE("the quantiles of every table of t are met") {
  const auto t95 = [](double df) { return student_t_quantile(0.975, df); };
  CHECK(t95(1) == Approx(12.706204736174705).epsilon(1e-12));
  CHECK(t95(2) == Approx(4.3026527297494639).epsilon(1e-12));
  CHECK(t95(4) == Approx(2.7764451051977944).epsilon(1e-12));
  CHECK(t95(kInfinity) == Approx(1.9599639845400543).epsilon(1e-12));
  CHECK(t95(1e12) == Approx(1.9599639845400543).epsilon(1e-11));
  CHECK(normal_quantile(0.975) == t95(kInfinity));
  CHECK(student_t_quantile(0.5, 7) == 0);
  CHECK(student_t_quantile(0.3, 7) == -student_t_quantile(0.7, 7));
  // Of one degree of freedom, tan(pi (p - 1/2)), however far out.
  CHECK(student_t_quantile(1e-15, 1) == Approx(-3.183098861837907e14).epsilon(1e-12));
  CHECK(student_t_two_sided_quantile(1e-300, 1) == Approx(6.366197723675814e299).epsilon(1e-11));
}

TEST_CASE("the normal distribution and its inverse keep their digits in the tails") {
  CHECK(normal_cdf(0) == 0.5);
  CHECK(normal_cdf(-6) == Approx(9.8658764503769815e-10).epsilon(1e-13));
  CHECK(normal_cdf(1.5) == Approx(0.93319279873114192).epsilon(1e-14));
  CHECK(normal_quantile(1e-10) == Approx(-6.3613409024040562).epsilon(1e-12));
  CHECK(normal_quantile(0) == -kInfinity);
  CHECK(normal_quantile(1) == kInfinity);
}

TEST_CASE("what is not a number stays none") {
  CHECK(std::isnan(student_t_quantile(std::nan(""), 3)));
  CHECK(std::isnan(student_t_two_sided_quantile(0.05, std::nan(""))));
}

}  // namespace
}  // namespace attnlab
