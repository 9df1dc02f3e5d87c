#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attnlab {

// Bytes this process can still get: what the system has available, or less where a container
// (cgroup v1 or v2) sets a limit.
std::uint64_t available_memory();

// Throws InputError naming `what`, its value and the estimate when `bytes` is more than there is.
// To be asked before large allocations: Linux would grant them and kill the process on first touch.
void require_memory(std::uint64_t bytes, std::string_view what, std::string_view value = {});

// "320 GB", "1.5 MB": decimal units, three digits at most.
std::string memory_text(std::uint64_t bytes);

}  // namespace attnlab
