#include "attnlab/attention/kernel/dropout.h"

#include "attnlab/core/random.h"

namespace attnlab {

template <class T>
void drop_weights(std::span<T> weights, Index first_key, Index row_index, double share,
                  std::uint64_t seed) {
  const auto first = static_cast<std::size_t>(first_key);
  const auto trial = static_cast<std::uint64_t>(row_index);
  const T kept = static_cast<T>(1 - share);
  PhiloxCounter bits{};
  for (std::size_t x = 0; x < weights.size(); ++x) {
    const std::size_t j = first + x;
    if (x == 0 || j % 4 == 0) {
      bits = random_block(seed, Stream::dropout, trial, static_cast<std::uint32_t>(j / 4));
    }
    // Times 0, not set to 0: a NaN row stays visible.
    if (uniform_of(bits[j % 4]) < share) {
      weights[x] *= T(0);
    } else {
      weights[x] /= kept;
    }
  }
}

template void drop_weights<float>(std::span<float>, Index, Index, double, std::uint64_t);
template void drop_weights<double>(std::span<double>, Index, Index, double, std::uint64_t);

}  // namespace attnlab
