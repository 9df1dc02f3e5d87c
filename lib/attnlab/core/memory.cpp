#include "attnlab/core/memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The number a file of the kernel starts with; nothing for "max" or when there is no such file.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The number after `name` in a file of lines "name number"; 0 when there is none.
std::uint64_t number_after(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t value = 0;
  while (file >> word >> value) {
    if (word == name) return value;
  }
  return 0;
}

// What a container may still take: its limit less its use, over it and its parents. Pages of files
// not read lately count as use but are given back when memory runs short.
std::uint64_t container_memory() {
  std::uint64_t free = kUnlimited;
  const auto level = [&](const std::string& folder, bool v2) {
    const auto limit = number_in(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto use = number_in(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    if (!limit || !use) return;
    const std::uint64_t cache =
        number_after(folder + "/memory.stat", v2 ? "inactive_file" : "total_inactive_file");
    const std::uint64_t held = *use - std::min(*use, cache);
    free = std::min(free, *limit - std::min(*limit, held));
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    while (path.size() > 1) {
      level(root + path, v2);
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    level(root, v2);
  }
  return free;
}

std::uint64_t system_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  while (info >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kUnlimited;
}

}  // namespace

std::uint64_t available_memory() { return std::min(system_memory(), container_memory()); }

void require_memory(std::uint64_t bytes, std::string_view what, std::string_view value) {
  // Small work needs no look at the system, which costs more than the work.
  if (bytes < (std::uint64_t{1} << 26)) return;
  const std::uint64_t available = available_memory();
  if (bytes <= available) return;
  throw InputError(
      "", what, value,
      "needs " + memory_text(bytes) + " of memory, " + memory_text(available) + " are available");
}

std::string memory_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 3);
  return std::string(text.data(), end.ptr) + " " + kUnits[unit];
}

}  // namespace attnlab
