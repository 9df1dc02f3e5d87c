#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attnlab {

// Bad input, told in one line: "source: field: got value, rule", for example
// "variance.json: samples: got 1, need at least 2". The source is a file or "command line", the
// field an option, tensor or position within it; parts that do not apply are left empty and
// left out. Control characters are escaped and long values cut, so that a hostile file cannot
// break the line or the terminal.
class InputError : public std::runtime_error {
 public:
  InputError(std::string_view source, std::string_view field, std::string_view value,
             std::string_view rule);

  const std::string& source() const { return source_; }
  const std::string& field() const { return field_; }
  const std::string& value() const { return value_; }
  const std::string& rule() const { return rule_; }

 private:
  std::string source_, field_, value_, rule_;
};

// `text` on one line: control characters (of writing direction too) and malformed UTF-8 as \xNN,
// cut at `limit` bytes with an ellipsis.
std::string printable(std::string_view text, std::size_t limit = 200);

// The entry of `names` nearest to `name` by edit distance, with or without dashes and underscores,
// or "" when none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace attnlab
