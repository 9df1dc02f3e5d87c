#include "attnlab/core/philox.h"

#include "catch.h"

namespace attnlab {
namespace {

// The three vectors for philox4x32-10 of the authors' Random123 distribution (kat_vectors).
TEST_CASE("Philox4x32-10 gives its authors' known answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the key holds the seed's low word first") {
  CHECK(philox_key(0x0123456789abcdef) == PhiloxKey{0x89abcdef, 0x01234567});
}

}  // namespace
}  // namespace attnlab
