#include "options/numbers.h"

#include "catch.h"

namespace attnlab {
namespace {

TEST_CASE("text that could only be meant as a number looks numeric") {
  for (const char* text : {"1", "-1", "-.5", "+2", "-1e-3", "-inf", "-NaN", "inf", "-1x"}) {
    INFO(text);
    CHECK(looks_numeric(text));
  }
  for (const char* text : {"", "-", "-x", "--1", "W.npy", "-.", ".x", "-info"}) {
    INFO(text);
    CHECK_FALSE(looks_numeric(text));
  }
}

TEST_CASE("integers fit or are none") {
  CHECK(parse_integer("-9223372036854775808") == std::numeric_limits<Index>::min());
  CHECK_FALSE(parse_integer("9223372036854775808"));
  CHECK_FALSE(parse_integer(""));
  CHECK_FALSE(parse_integer("+-1"));
  CHECK_FALSE(parse_integer("++1"));
  CHECK(parse_integer("+1") == 1);
  CHECK_FALSE(parse_unsigned("-0"));
}

TEST_CASE("reals are finite unless asked otherwise") {
  CHECK_FALSE(parse_real("inf"));
  CHECK_FALSE(parse_real("1e400", true));
  CHECK(parse_real("1e-400") == 0.0);
  CHECK(parse_real("-INF", true) == -std::numeric_limits<double>::infinity());
  CHECK_FALSE(parse_real("infinit", true));
  CHECK_FALSE(parse_real("nan(1)", true));
}

}  // namespace
}  // namespace attnlab
