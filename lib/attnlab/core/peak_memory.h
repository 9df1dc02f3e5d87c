#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace attnlab {

// How far `work` takes the memory of this process above what it held before, in bytes: pages that
// were touched, to the kernel's accuracy of some dozen pages. What earlier work has left with the
// allocator is given back first where the C library can, so that it counts when it is taken again.
// Nothing where the system does not tell: it is Linux that does, by the mark VmHWM, which a 5 in
// /proc/self/clear_refs takes back to the present. The work is done either way.
std::optional<std::uint64_t> peak_memory(const std::function<void()>& work);

}  // namespace attnlab
