// Sixteen numbers of float64 in vectors, on every target as many as it has lanes for. Included once
// for every target, see hwy/foreach_target.h.
#if defined(ATTNLAB_CORE_DOUBLE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_CORE_DOUBLE_LANES_INL_H_
#undef ATTNLAB_CORE_DOUBLE_LANES_INL_H_
#else
#define ATTNLAB_CORE_DOUBLE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_SCALABLE
using Doubles = hn::CappedTag<double, 1>;
#else
using Doubles = hn::ScalableTag<double>;
#endif
inline constexpr std::size_t kSixteen = 16;
inline constexpr std::size_t kLanes = hn::MaxLanes(Doubles());
inline constexpr std::size_t kVectors = kSixteen / kLanes;
static_assert(kVectors >= 1 && kSixteen % kLanes == 0);

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
