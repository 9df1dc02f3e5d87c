#include "attnlab/attention/kernel/tiled.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/attention/kernel/tiled.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/attention/kernel/tiled_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

ZeroRows attend_float(const KernelCall<float>& call, const RowBlock& block,
                      AttentionResult<float>& result) {
  return TiledBlock<float>(call, block, result).attend();
}
ZeroRows attend_double(const KernelCall<double>& call, const RowBlock& block,
                       AttentionResult<double>& result) {
  return TiledBlock<double>(call, block, result).attend();
}
const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(attend_float);
HWY_EXPORT(attend_double);
HWY_EXPORT(target_name);

template <>
ZeroRows attend_tiled(const KernelCall<float>& call, const RowBlock& block,
                      AttentionResult<float>& result) {
  return HWY_DYNAMIC_DISPATCH(attend_float)(call, block, result);
}
template <>
ZeroRows attend_tiled(const KernelCall<double>& call, const RowBlock& block,
                      AttentionResult<double>& result) {
  return HWY_DYNAMIC_DISPATCH(attend_double)(call, block, result);
}

const char* tiled_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace attnlab
#endif
