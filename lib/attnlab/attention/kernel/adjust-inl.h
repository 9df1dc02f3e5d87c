// What is done to scores before their softmax. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_ADJUST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_ADJUST_INL_H_
#undef ATTNLAB_KERNEL_ADJUST_INL_H_
#else
#define ATTNLAB_KERNEL_ADJUST_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "attnlab/attention/kernel/call.h"
#include "attnlab/attention/kernel/score_row-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Softcap, linear biases and the masks that are given element by element, on the scores of a tile
// of keys with the queries of a block.
template <class T>
class ScoreAdjuster {
 public:
  ScoreAdjuster(const KernelCall<T>& call, const RowBlock& block) : call_(call), block_(block) {}

  // Whether scores change, beyond being hidden.
  bool adds() const {
    return call_.mask.has_additive() || call_.mask.has_alibi() || call_.settings.softcap;
  }

  // Scores of query r of the block with the keys, of which those beyond `seen` do not count (from
  // keys.first on). True where a mask of elements shows it a key.
  bool adjust(Index r, T* scores, KeyRange keys, KeyRange seen) {
    const Index count = seen.last - seen.first;
    if (count == 0) return false;
    if (call_.settings.softcap) {
      cap_row(scores + seen.first, count, static_cast<T>(*call_.settings.softcap));
    }
    if (call_.mask.has_alibi()) add_alibi(r, scores, keys);
    if (!call_.mask.has_elementwise()) return false;
    scores += seen.first;
    const auto length = static_cast<std::size_t>(count);
    const bool additive = call_.mask.has_additive();
    const Index first = keys.first + seen.first;
    call_.mask.template read_row<T>(block_.b, block_.h, block_.first + r, {first, first + count},
                                    {seen_.data(), length},
                                    {bias_.data(), additive ? length : std::size_t{0}});
    bool sees_key = false;
    for (std::size_t j = 0; j < length; ++j) {
      if (additive) scores[j] += bias_[j];
      scores[j] = seen_[j] != 0 ? scores[j] : -std::numeric_limits<T>::infinity();
      sees_key = sees_key || seen_[j] != 0;
    }
    return sees_key;
  }

 private:
  // Linear biases of a row, but for the open keys, which stand nowhere.
  void add_alibi(Index r, T* scores, KeyRange keys) {
    const Index count = keys.last - keys.first;
    const Index open = std::clamp<Index>(call_.mask.open_keys() - keys.first, 0, count);
    std::copy_n(scores, open, bias_.data());
    const auto self = static_cast<double>(call_.mask.position(block_.b, block_.first + r));
    add_linear_bias(scores, round_up(count, kLanes<T>),
                    static_cast<T>(self - static_cast<double>(keys.first)),
                    static_cast<T>(call_.mask.alibi_slope(block_.h)));
    std::copy_n(bias_.data(), open, scores);
  }

  const KernelCall<T>& call_;
  const RowBlock& block_;
  std::array<T, kTileKeys> bias_{};
  std::array<std::uint8_t, kTileKeys> seen_{};
};

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
