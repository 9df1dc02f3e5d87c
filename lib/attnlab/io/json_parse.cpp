#include <algorithm>
#include <array>
#include <set>

#include "attnlab/core/error.h"
#include "attnlab/core/text.h"
#include "attnlab/io/json.h"
#include "attnlab/io/memory_watch.h"
#include "attnlab/io/text_encoding.h"

namespace attnlab {
namespace {

constexpr std::size_t kMaxDepth = 32;

// The letters around `offset`, with the sign before them.
std::string_view word_at(std::string_view text, std::size_t offset) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::size_t begin = offset;
  std::size_t end = offset;
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  while (end < text.size() && is_letter(text[end])) ++end;
  if (begin > 0 && (text[begin - 1] == '-' || text[begin - 1] == '+')) --begin;
  return text.substr(begin, end - begin);
}

// What the syntax error at `offset` probably comes from; "" when nothing special.
std::string syntax_hint(std::string_view text, std::size_t offset) {
  static constexpr std::array<std::string_view, 4> kBare = {"nan", "inf", "infinity", "none"};
  if (offset >= text.size()) return "the text ends too early";
  const std::string_view word = word_at(text, offset);
  const std::string lower =
      lower_case(word.substr(word.find_first_not_of("+-") == 1 ? 1 : 0).substr(0, 16));
  if (std::find(kBare.begin(), kBare.end(), lower) != kBare.end()) {
    return std::string(word) +
           " is not JSON, write \"NaN\", \"Infinity\" or \"-Infinity\" with the quotes";
  }
  const char c = text[offset];
  if (c == '/' || c == '#') return "JSON has no comments";
  if (c == '\'') return "JSON has double quotes only";
  const std::size_t before =
      offset == 0 ? std::string_view::npos : text.find_last_not_of(" \t\r\n", offset - 1);
  if ((c == ']' || c == '}') && before != std::string_view::npos && text[before] == ',') {
    return "JSON has no comma after the last value";
  }
  return "";
}

// The parser's own words, without the position that text_place() tells.
std::string parser_message(const nlohmann::detail::exception& error) {
  const std::string_view what = error.what();
  const std::size_t start = what.find("syntax error");
  return std::string(start == std::string_view::npos ? what : what.substr(start));
}

// Builds the Json from the events of the parser, which would itself keep the last of two equal
// keys and know no limit of depth.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, std::string_view source)
      : text_(text), source_(source), memory_(source) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) {
    // Integers with a sign arrive here: zero among them can only have been "-0".
    return value == 0 ? add(-0.0) : add(value);
  }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) {
    memory_.add(value.size());
    return add(std::move(value));
  }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool end_array() { return close(); }
  bool end_object() { return close(); }
  bool key(std::string& name) {
    memory_.add(2 * name.size() + 128);
    if (!keys_.back().insert(name).second) {
      throw InputError(source_, path() + (path_is_root() ? "" : ".") + name, "",
                       "the key stands twice in its object");
    }
    // ordered_map's own insertion would search all keys before.
    open_.back()->get_ref<Json::object_t&>().emplace_back(std::move(name), nullptr);
    pending_ = true;
    return true;
  }
  [[noreturn]] bool parse_error(std::size_t position, const std::string& token,
                                const nlohmann::detail::exception& error) {
    if (dynamic_cast<const nlohmann::detail::out_of_range*>(&error) != nullptr) {
      throw InputError(source_, path(), token, "out of the range of float64");
    }
    // The parser has read the byte that it stumbled over.
    const std::size_t offset = std::min(position > 0 ? position - 1 : 0, text_.size());
    std::string field = text_place(text_, offset);
    if (const std::string at = path(); !at.empty()) field += " (at " + at + ")";
    const std::string hint = syntax_hint(text_, offset);
    throw InputError(source_, field, "", hint.empty() ? parser_message(error) : hint);
  }

  Json take() { return std::move(root_); }

 private:
  // Puts a value where the next one belongs.
  Json& place_value(Json&& value) {
    memory_.add(2 * sizeof(Json));
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& array = parent.get_ref<Json::array_t&>();
      array.push_back(std::move(value));
      return array.back();
    }
    pending_ = false;
    return parent.get_ref<Json::object_t&>().back().second = std::move(value);
  }
  bool add(Json&& value) {
    place_value(std::move(value));
    return true;
  }
  bool open(Json&& container) {
    if (open_.size() == kMaxDepth) {
      throw InputError(source_, "", "", "nested deeper than 32 arrays and objects");
    }
    memory_.add(64);
    open_.push_back(&place_value(std::move(container)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  bool path_is_root() const { return open_.size() == 1 && !pending_; }

  // Where the value that is read next belongs: "q[0][1]".
  std::string path() const {
    std::string text;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const bool innermost = i + 1 == open_.size();
      if (open_[i]->is_array()) {
        const std::size_t index = open_[i]->size() - (innermost ? 0 : 1);
        text.append("[").append(std::to_string(index)).append("]");
      } else if (!innermost || pending_) {
        if (!text.empty()) text += ".";
        text += open_[i]->get_ref<const Json::object_t&>().back().first;
      }
    }
    return text;
  }

  std::string_view text_;
  std::string source_;
  MemoryWatch memory_;
  Json root_;
  // The containers that are not closed yet, outermost first. They stay where they are: nothing is
  // added beside a container before it closes.
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;  // of each
  bool pending_ = false;                     // a key of the innermost waits for its value
};

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  text = utf8_text(text, source);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InputError(source, "", "", "is empty, need JSON");
  }
  TreeBuilder builder(text, source);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace attnlab
