#include "attnlab/stats/scaling.h"

#include <cmath>
#include <map>
#include <string>

#include "attnlab/core/error.h"
#include "attnlab/stats/softmax_theory.h"
#include "catch.h"
#include "theory_table.h"

namespace attnlab {
namespace {

TEST_CASE("the scalings give the logit variances of their table") {
  const std::map<std::string, std::string> names = {
      {"none", "none"},
      {"1/sqrt(d)", "inv_sqrt_d"},
      {"1/d_(muP)", "inv_d"},
      {"SSMax_s=0.43,_z=q.k/sqrt_d", "scalable_softmax:0.43"},
      {"log_n_/_sqrt_d_(s=1)", "log_n_over_sqrt_d"},
      {"sqrt(2_ln_n)/sqrt_d_(critical)", "critical"},
      {"QK-norm_g=10_(1/tau=10)", "cosine:10"},
      {"softcap_50_on_scaled", "softcap:50"},
  };
  int met = 0;
  for (const auto& row : test::theory_table("scalings.txt")) {
    const auto name = names.find(row.word(3));
    if (name == names.end()) continue;
    const Scaling scaling = parse_scaling(name->second);
    INFO(name->second);
    CHECK(logit_variance(scaling, row.number(1), static_cast<std::uint64_t>(row.number(0)), 1) ==
          Approx(row.number(2)).epsilon(1e-10));
    ++met;
  }
  CHECK(met == 32);
  // A cap of 5 on logits of variance 64 is that of 5/8 on standard ones, times 64.
  CHECK(64 * logit_variance(parse_scaling("softcap:0.625"), 1, 8, 1) ==
        Approx(14.071655748932642).epsilon(1e-10));
}

TEST_CASE("sigma enters the logit variance to the fourth power but where it is divided out") {
  const auto variance = [](const char* name, double sigma) {
    return logit_variance(parse_scaling(name), 64, 512, sigma);
  };
  CHECK(variance("none", 0.5) == Approx(4));
  CHECK(variance("inv_sqrt_d", 2) == Approx(16));
  CHECK(variance("inv_sqrt_d_sigma2", 2) == Approx(1));
  CHECK(variance("qk_norm:8", 2) == Approx(1));
  CHECK(variance("0.5", 1) == Approx(16));
  CHECK(variance("softcap:1000", 2) == Approx(16).epsilon(1e-3));
}

TEST_CASE("a scaling that is a factor has it, and only those have normal logits") {
  const auto factor = [](const char* name) {
    return scaling_factor(parse_scaling(name), 64, 512, 2);
  };
  CHECK(*factor("none") == 1);
  CHECK(*factor("inv_sqrt_d") == 0.125);
  CHECK(*factor("inv_d") == 1.0 / 64);
  CHECK(*factor("inv_sqrt_d_sigma2") == 1.0 / 32);
  CHECK(*factor("-0.25") == -0.25);
  for (const char* name : {"qk_norm:1", "cosine:1", "softcap:1"}) {
    CHECK(!factor(name));
    CHECK(!has_normal_logits(parse_scaling(name)));
  }
  CHECK(has_normal_logits(parse_scaling("critical")));
}

TEST_CASE("scalings survive as text, exactly") {
  for (const char* text :
       {"none", "inv_sqrt_d", "inv_d", "inv_sqrt_d_sigma2", "log_n_over_sqrt_d", "critical",
        "scalable_softmax:0.43", "qk_norm:10", "cosine:0.1", "softcap:50", "0.125", "-1"}) {
    CHECK(scaling_name(parse_scaling(text)) == text);
  }
}

TEST_CASE("text that is no scaling is refused with the nearest name") {
  for (const char* text : {"", "inv", "softcap", "softcap:", "softcap:-1", "softcap:x", "none:1",
                           "qk_norm:0", "nan", "inf", "1e999", "0.5x"}) {
    CHECK_THROWS_AS(parse_scaling(text), InputError);
  }
  try {
    parse_scaling("inv_sqrt");
    FAIL("not refused");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("inv_sqrt_d") != std::string::npos);
  }
}

// The variances at which the mean entropy is a given share of ln n.
TEST_CASE("the entropy targets of the table are met") {
  for (const auto& row : test::theory_table("entropy_target.txt")) {
    const auto n = static_cast<std::uint64_t>(row.number(0));
    CHECK(softmax_theory(n, row.number(2)).entropy / std::log(row.number(0)) ==
          Approx(row.number(1)).epsilon(1e-8));
  }
}

}  // namespace
}  // namespace attnlab
