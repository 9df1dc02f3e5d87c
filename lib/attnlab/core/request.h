#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attnlab {

// The named matrices a caller wants in a result. What is not asked for is not kept; asking never
// changes the values of anything else.
class Request {
 public:
  Request() = default;
  Request(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) add(name);
  }

  void add(std::string_view name) { names_.emplace(name); }
  // Wanted as a step of the calculation, where the calculation has it.
  void add_step(std::string_view name) { steps_.emplace(name); }
  // The calculation goes without this step: it is kept only for who named it.
  void leave_out_step(std::string_view name) { steps_.erase(std::string(name)); }

  bool has(std::string_view name) const {
    return names_.find(name) != names_.end() || steps_.find(name) != steps_.end();
  }
  bool empty() const { return names_.empty() && steps_.empty(); }

 private:
  std::set<std::string, std::less<>> names_, steps_;
};

}  // namespace attnlab
