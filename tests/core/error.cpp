#include "attnlab/core/error.h"

#include "catch.h"

namespace attnlab {
namespace {

TEST_CASE("an input error names source, field, value and rule in one line") {
  const InputError error("variance.json", "samples", "1", "need at least 2");
  CHECK(std::string(error.what()) == "variance.json: samples: got 1, need at least 2");
  CHECK(error.source() == "variance.json");
  CHECK(error.field() == "samples");
  CHECK(error.value() == "1");
  CHECK(error.rule() == "need at least 2");
}

TEST_CASE("parts that do not apply are left out of an input error") {
  CHECK(std::string(InputError("", "", "", "nothing to do").what()) == "nothing to do");
  CHECK(std::string(InputError("", "q", "", "is missing").what()) == "q: is missing");
  CHECK(std::string(InputError("a.npy", "", "5", "need 6").what()) == "a.npy: got 5, need 6");
}

TEST_CASE("a hostile value cannot break the line or the terminal") {
  const InputError error("a\nb", "f", "\x1b[31mred\x1b[0m\r\n", "need a number");
  CHECK(std::string(error.what()) ==
        "a\\x0ab: f: got \\x1b[31mred\\x1b[0m\\x0d\\x0a, need a number");
  const InputError longer("", "f", std::string(100000, 'x'), "need less");
  CHECK(std::string(longer.what()) == "f: got " + std::string(80, 'x') + "..., need less");
}

TEST_CASE("printable text keeps well-formed UTF-8 and escapes what is not") {
  CHECK(printable("plain text") == "plain text");
  CHECK(printable("\xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80") ==
        "\xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80");
  CHECK(printable(std::string_view("\0\t\x7F", 3)) == "\\x00\\x09\\x7f");
  // Control characters of two bytes (C1), which terminals obey too; U+00A0 is none.
  CHECK(printable("\xC2\x9B"
                  "31m\xC2\xA0") ==
        "\\xc2\\x9b"
        "31m\xC2\xA0");
  CHECK(printable("\x80\xFF") == "\\x80\\xff");
  CHECK(printable("a\xC3") == "a\\xc3");  // cut short
  // What lies behind the end of a view is not looked at.
  CHECK(printable(std::string_view("\xE4\xBD\xA0", 2)) == "\\xe4\\xbd");
  CHECK(printable("\xC0\xAF") == "\\xc0\\xaf");           // overlong, two bytes
  CHECK(printable("\xE0\x82\x9B") == "\\xe0\\x82\\x9b");  // overlong, three bytes
  CHECK(printable("\xF0\x80\x80\x8A") == "\\xf0\\x80\\x80\\x8a");
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}

TEST_CASE("printable text is cut at its limit, never inside a character") {
  CHECK(printable("abcdef", 6) == "abcdef");
  CHECK(printable("abcdefg", 6) == "abcdef...");
  CHECK(printable("abcd\xE4\xBD\xA0", 6) == "abcd...");
  CHECK(printable("abc\n", 6) == "abc...");
  CHECK(printable("abc\xFF", 6) == "abc...");
  CHECK(printable("\xC2\x9B", 7) == "...");
}

TEST_CASE("the nearest name is found where one is near") {
  const std::vector<std::string> names = {"scale", "causal", "samples", "d_k", "d_v"};
  CHECK(nearest_name("sclae", names) == "scale");
  CHECK(nearest_name("casual", names) == "causal");
  CHECK(nearest_name("sample", names) == "samples");
  CHECK(nearest_name("dk", names) == "d_k");
  CHECK(nearest_name("dk", {"m", "k", "d-k"}) == "d-k");
  CHECK(nearest_name("kv_heads", {"heads", "kv-heads"}) == "kv-heads");
  CHECK(nearest_name("frobnicate", names).empty());
  CHECK(nearest_name("foo", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name("scale", {}).empty());
  CHECK(nearest_name(std::string(100000, 'x'), names).empty());
}

}  // namespace
}  // namespace attnlab
