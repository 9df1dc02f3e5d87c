#include "attnlab/attention/alibi.h"

#include <cmath>

namespace attnlab {

std::vector<double> alibi_slopes(Index heads) {
  Index power = 1;
  while (power <= heads / 2) power *= 2;
  const auto slope = [](Index number, Index of) {
    return std::exp2(-8 * static_cast<double>(number) / static_cast<double>(of));
  };
  std::vector<double> slopes;
  slopes.reserve(static_cast<std::size_t>(heads));
  for (Index h = 0; h < heads; ++h) {
    slopes.push_back(h < power ? slope(h + 1, power) : slope(2 * (h - power) + 1, 2 * power));
  }
  return slopes;
}

}  // namespace attnlab
