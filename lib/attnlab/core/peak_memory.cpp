#include "attnlab/core/peak_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace attnlab {
namespace {

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

bool reset_high_water_mark() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

std::optional<std::uint64_t> high_water_mark() {
  std::ifstream file("/proc/self/status");
  std::string name;
  std::uint64_t kib = 0;
  while (file >> name) {
    if (name == "VmHWM:" && file >> kib) return kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> peak_memory(const std::function<void()>& work) {
  return_free_memory();
  std::optional<std::uint64_t> before;
  if (reset_high_water_mark()) before = high_water_mark();
  work();
  const std::optional<std::uint64_t> after = before ? high_water_mark() : std::nullopt;
  if (!after) return std::nullopt;
  return *after - std::min(*after, *before);
}

}  // namespace attnlab
