#include "attnlab/attention/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/core/threads.h"

namespace attnlab {
namespace {

std::vector<double> frequencies(double theta, Index d) {
  std::vector<double> frequencies(static_cast<std::size_t>(d / 2));
  for (std::size_t c = 0; c < frequencies.size(); ++c) {
    frequencies[c] = std::pow(theta, -2 * static_cast<double>(c) / static_cast<double>(d));
  }
  return frequencies;
}

// The cosines and sines of one position.
struct Turn {
  explicit Turn(std::size_t pairs) : cosines(pairs), sines(pairs) {}

  void set(Index position, const std::vector<double>& frequencies, double direction) {
    for (std::size_t c = 0; c < frequencies.size(); ++c) {
      const double angle = static_cast<double>(position) * frequencies[c];
      cosines[c] = std::cos(angle);
      sines[c] = direction * std::sin(angle);
    }
  }
  template <class T>
  void apply(T* row) const {
    const std::size_t half = cosines.size();
    for (std::size_t c = 0; c < half; ++c) {
      const auto x = static_cast<double>(row[c]), y = static_cast<double>(row[c + half]);
      row[c] = static_cast<T>(x * cosines[c] - y * sines[c]);
      row[c + half] = static_cast<T>(y * cosines[c] + x * sines[c]);
    }
  }

  std::vector<double> cosines, sines;
};

template <class T>
Tensor<T> turned(Tensor<T> x, const Rotary& rotary, double direction, Index threads) {
  require_rotary(x.shape(), rotary);
  constexpr Index kRows = 64;
  // Waking a thread costs as much as rotating some thousand rows.
  constexpr Index kAlone = Index{1} << 16;
  const Index batch = x.shape()[0], heads = x.shape()[1], n = x.shape()[2], d = x.shape()[3];
  const std::vector<double> speeds = frequencies(rotary.theta, d);
  const Index blocks = (std::max<Index>(0, n - rotary.from) + kRows - 1) / kRows;
  parallel_for(x.size() < kAlone ? 1 : threads, blocks, [&](Index block) {
    Turn turn(speeds.size());
    const Index first = rotary.from + block * kRows;
    for (Index i = first; i < std::min(n, first + kRows); ++i) {
      for (Index b = 0; b < batch; ++b) {
        if (b == 0 || rotary.offsets.size() > 1) {
          const std::size_t entry = rotary.offsets.size() > 1 ? static_cast<std::size_t>(b) : 0;
          turn.set(rotary.offsets[entry] + i, speeds, direction);
        }
        for (Index h = 0; h < heads; ++h) turn.apply(x.data() + ((b * heads + h) * n + i) * d);
      }
    }
  });
  return x;
}

}  // namespace

void require_rotary(const Shape& x, const Rotary& rotary) {
  if (!(rotary.theta >= 1 && std::isfinite(rotary.theta))) {
    throw InputError("", "rope_theta", fmt::format("{}", rotary.theta),
                     "need a finite number of at least 1");
  }
  if (x.rank() != 4) {
    throw InputError("", "rope_theta", x.str(), "need 4 axes, [batch, heads, length, width]");
  }
  if (x[3] % 2 != 0) {
    throw InputError("", "rope_theta", fmt::format("d_k = {} in {}", x[3], x.str()),
                     "need an even d_k, whose halves are turned in pairs");
  }
  const std::size_t count = rotary.offsets.size();
  if (count != 1 && count != static_cast<std::size_t>(x[0])) {
    throw InputError("", "offset", fmt::format("{} values", count),
                     fmt::format("need 1, or one for each of the {} batch entries", x[0]));
  }
  if (x[2] <= rotary.from) return;
  for (const Index offset : rotary.offsets) {
    if (offset >= -kMostRotaryPosition - rotary.from && offset <= kMostRotaryPosition - x[2] + 1) {
      continue;
    }
    throw InputError("", "rope_theta", fmt::format("rows from position {} on", offset),
                     fmt::format("need positions from -{0} to {0}", kMostRotaryPosition));
  }
}

template <class T>
Tensor<T> rotate(Tensor<T> x, const Rotary& rotary, Index threads) {
  return turned(std::move(x), rotary, 1, threads);
}

template <class T>
Tensor<T> rotate_back(Tensor<T> grad, const Rotary& rotary, Index threads) {
  return turned(std::move(grad), rotary, -1, threads);
}

template Tensor<float> rotate(Tensor<float>, const Rotary&, Index);
template Tensor<double> rotate(Tensor<double>, const Rotary&, Index);
template Tensor<float> rotate_back(Tensor<float>, const Rotary&, Index);
template Tensor<double> rotate_back(Tensor<double>, const Rotary&, Index);

}  // namespace attnlab
