#include "options/read_text.h"

#include <algorithm>
#include <filesystem>

#include "attnlab/core/error.h"
#include "options/numbers.h"
#include "options/overloaded.h"
#include "options/rules.h"

namespace attnlab {
namespace {

std::string trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

class Reader {
 public:
  Reader(const OptionRef& option, const std::vector<std::string>& texts)
      : option_(option), texts_(texts), text_(texts.at(0)) {}

  void operator()(bool* value) const { *value = truth(); }
  void operator()(std::optional<bool>* value) const { *value = truth(); }
  void operator()(Index* value) const { *value = integer(text_); }
  void operator()(std::optional<Index>* value) const { *value = integer(text_); }
  void operator()(std::uint64_t* value) const {
    const auto number = parse_unsigned(text_);
    if (!number) refuse(text_);
    *value = *number;
  }
  void operator()(double* value) const { *value = number(text_); }
  void operator()(std::optional<double>* value) const { *value = number(text_); }
  void operator()(std::string* value) const { *value = text_; }
  void operator()(std::vector<Index>* list) const {
    std::vector<Index> numbers;
    for (const std::string& item : items()) numbers.push_back(integer(item));
    *list = std::move(numbers);
  }
  void operator()(std::vector<double>* list) const {
    std::vector<double> numbers;
    for (const std::string& item : items()) numbers.push_back(number(item));
    *list = std::move(numbers);
  }
  void operator()(std::vector<std::string>* list) const { *list = items(); }
  void operator()(WordOrNumber* value) const {
    if (std::find(option_.words.begin(), option_.words.end(), text_) != option_.words.end()) {
      *value = WordOrNumber();
      value->word = text_;
      return;
    }
    const auto number = parse_real(text_, option_.non_finite);
    if (!number) refuse(text_, choice_rule(text_, option_.words, option_));
    *value = WordOrNumber(*number);
  }
  void operator()(FilePath* value) const { value->path = path(text_); }
  void operator()(std::vector<FilePath>* list) const {
    list->clear();
    for (const std::string& text : texts_) list->push_back({path(text)});
  }
  void operator()(TensorSource* source) const {
    *source = {};
    if (texts_.size() == 1 && is_file(text_)) {
      source->path = text_;
      return;
    }
    if (option_.list_text) source->values = list_tensor(items(), option_.non_finite);
    if (source->values) return;
    if (texts_.size() > 1) refuse(joined(), "need numbers, or one file");
    source->path = path(text_);
  }
  void operator()(NamedFiles* files) const {
    files->clear();
    for (const std::string& text : texts_) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) refuse(text);
      files->push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
  }
  void operator()(const ChoiceRef& choice) const {
    choice.set(choice.object, index_of(text_, choice.names));
  }
  void operator()(const ChoiceListRef& choice) const {
    std::vector<int> indices;
    for (const std::string& item : items()) indices.push_back(index_of(item, choice.names));
    choice.set(choice.object, indices);
  }

 private:
  [[noreturn]] void refuse(const std::string& text, const std::string& rule) const {
    throw InputError(kCommandLine, option_.flag(), text.empty() ? "nothing" : text, rule);
  }
  [[noreturn]] void refuse(const std::string& text) const {
    refuse(text, "need " + value_text(option_));
  }

  bool truth() const {
    if (text_ != "true" && text_ != "false") {
      refuse(text_, "need no value: the flag alone, or =true or =false");
    }
    return text_ == "true";
  }
  Index integer(const std::string& text) const {
    const auto number = parse_integer(text);
    if (!number) refuse(text);
    return *number;
  }
  double number(const std::string& text) const {
    const auto value = parse_real(text, option_.non_finite);
    if (!value) refuse(text);
    return *value;
  }
  std::string path(const std::string& text) const {
    if (text.empty()) refuse(text);
    return text;
  }
  int index_of(const std::string& text, std::span<const std::string_view> names) const {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) refuse(text, choice_rule(text, names, option_));
    return static_cast<int>(found - names.begin());
  }

  static bool is_file(const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error);
  }
  std::string joined() const {
    std::string list;
    for (const std::string& text : texts_) list += (list.empty() ? "" : ",") + text;
    return list;
  }
  // What stands between the commas.
  std::vector<std::string> items() const {
    std::vector<std::string> list;
    for (const std::string& text : texts_) {
      for (std::size_t start = 0; start <= text.size();) {
        const std::size_t comma = std::min(text.find(',', start), text.size());
        list.push_back(trimmed(std::string_view(text).substr(start, comma - start)));
        if (list.back().empty()) refuse(text, "need " + value_text(option_) + " at every comma");
        start = comma + 1;
      }
    }
    return list;
  }

  const OptionRef& option_;
  const std::vector<std::string>& texts_;
  const std::string& text_;
};

}  // namespace

void read_text(const OptionRef& option, const std::vector<std::string>& texts) {
  std::visit(Reader(option, texts), option.value);
}

std::optional<AnyTensor> list_tensor(const std::vector<std::string>& items, bool non_finite) {
  const Shape shape{static_cast<Index>(items.size())};
  Tensor<std::int64_t> integers(shape);
  Tensor<double> numbers(shape);
  bool all_integers = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto at = static_cast<Index>(i);
    const auto number = parse_real(items[i], non_finite);
    if (!number) return std::nullopt;
    numbers[at] = *number;
    const auto integer = parse_integer(items[i]);
    all_integers = all_integers && integer;
    integers[at] = integer.value_or(0);
  }
  if (all_integers) return integers;
  return numbers;
}

std::string choice_rule(std::string_view text, std::span<const std::string_view> names,
                        const OptionRef& option) {
  // NaN is a number out of place, not a word misspelt.
  const bool number = parse_real(text, /*non_finite=*/true).has_value();
  const std::string nearest = number ? "" : nearest_name(text, {names.begin(), names.end()});
  return "need " + value_text(option) + (nearest.empty() ? "" : ", did you mean " + nearest + "?");
}

}  // namespace attnlab
