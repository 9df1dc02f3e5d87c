#include "options/read_json.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/io/number_text.h"
#include "options/overloaded.h"
#include "options/read_text.h"
#include "options/rules.h"

namespace attnlab {
namespace {

// Whole numbers written 2.0 or 1e3 are integers, as JSON Schema has it, while float64 holds them
// exactly.
constexpr double kExactIntegers = 9007199254740992;  // 2^53

template <class T>
std::optional<T> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (!std::in_range<T>(number)) return std::nullopt;
    return static_cast<T>(number);
  }
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (!std::in_range<T>(number)) return std::nullopt;
    return static_cast<T>(number);
  }
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (number != std::floor(number) || std::abs(number) > kExactIntegers) return std::nullopt;
  if (std::is_unsigned_v<T> && number < 0) return std::nullopt;
  return static_cast<T>(number);
}

std::optional<double> real_number(const Json& value, bool non_finite) {
  if (value.is_number()) return value.get<double>();
  if (!non_finite || !value.is_string()) return std::nullopt;
  return parse_non_finite(value.get<std::string>());
}

// [3, 5] as the command line would have it, to be of the same dtype whichever way it came.
std::optional<AnyTensor> integer_list(const Json& array) {
  if (!array.is_array() || array.empty()) return std::nullopt;
  Tensor<std::int64_t> integers(Shape{static_cast<Index>(array.size())});
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto integer =
        array[i].is_number_integer() ? whole_number<Index>(array[i]) : std::nullopt;
    if (!integer) return std::nullopt;
    integers[static_cast<Index>(i)] = *integer;
  }
  return integers;
}

class Reader {
 public:
  Reader(const OptionRef& option, const Json& value, const ConfigPlace& place)
      : option_(option), value_(value), place_(place) {}

  void operator()(bool* target) const { *target = truth(); }
  void operator()(Index* target) const { *target = integer<Index>(value_); }
  void operator()(std::uint64_t* target) const { *target = integer<std::uint64_t>(value_); }
  void operator()(double* target) const { *target = number(value_); }
  void operator()(std::string* target) const { *target = text(value_); }

  void operator()(std::optional<bool>* target) const {
    *target = value_.is_null() ? std::nullopt : std::optional(truth());
  }
  void operator()(std::optional<Index>* target) const {
    *target = value_.is_null() ? std::nullopt : std::optional(integer<Index>(value_));
  }
  void operator()(std::optional<double>* target) const {
    *target = value_.is_null() ? std::nullopt : std::optional(number(value_));
  }

  void operator()(std::vector<Index>* target) const {
    *target = list<Index>([&](const Json& item) { return integer<Index>(item); });
  }
  void operator()(std::vector<double>* target) const {
    *target = list<double>([&](const Json& item) { return number(item); });
  }
  void operator()(std::vector<std::string>* target) const {
    *target = list<std::string>([&](const Json& item) { return text(item); });
  }
  void operator()(std::vector<FilePath>* target) const {
    *target = list<FilePath>([&](const Json& item) { return FilePath{path(item)}; });
  }

  void operator()(WordOrNumber* target) const {
    if (const auto number = real_number(value_, option_.non_finite)) {
      *target = WordOrNumber(*number);
    } else {
      *target = WordOrNumber();
      target->word = option_.words[index_of(value_, option_.words)];
    }
  }
  void operator()(FilePath* target) const {
    *target = value_.is_null() ? FilePath() : FilePath{path(value_)};
  }
  void operator()(TensorSource* target) const {
    *target = {};
    if (value_.is_null()) return;
    if (value_.is_string()) {
      target->path = path(value_);
    } else if (value_.is_array() || value_.is_number()) {
      if (option_.list_text) target->values = integer_list(value_);
      if (!target->values) {
        target->values = tensor_from_json(value_, place_.source, option_.name);
      }
    } else {
      refuse(value_);
    }
  }
  void operator()(NamedFiles* target) const {
    constexpr const char* kRule = "need an object of names and files";
    if (!value_.is_object()) refuse(value_, kRule);
    target->clear();
    for (const auto& [name, files] : value_.items()) {
      if (!files.is_array()) {
        target->push_back({name, path(files)});
      } else {
        for (const Json& file : files) target->push_back({name, path(file)});
      }
    }
  }
  void operator()(const ChoiceRef& choice) const {
    choice.set(choice.object, static_cast<int>(index_of(value_, choice.names)));
  }
  void operator()(const ChoiceListRef& choice) const {
    choice.set(choice.object, list<int>([&](const Json& item) {
                 return static_cast<int>(index_of(item, choice.names));
               }));
  }

 private:
  [[noreturn]] void refuse(const Json& value, const std::string& rule) const {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    throw InputError(place_.source, option_.name, text, rule);
  }
  [[noreturn]] void refuse(const Json& value) const {
    refuse(value, "need " + value_text(option_));
  }

  bool truth() const {
    if (!value_.is_boolean()) refuse(value_);
    return value_.get<bool>();
  }
  template <class T>
  T integer(const Json& value) const {
    const auto number = whole_number<T>(value);
    if (!number) refuse(value);
    return *number;
  }
  double number(const Json& value) const {
    const auto number = real_number(value, option_.non_finite);
    if (!number) refuse(value);
    return *number;
  }
  std::string text(const Json& value) const {
    if (!value.is_string()) refuse(value);
    return value.get<std::string>();
  }
  // "-" is standard input or output, wherever the config stands.
  std::string path(const Json& value) const {
    std::string name = text(value);
    if (name.empty()) refuse(value);
    if (name == "-" || name.starts_with("-:") || place_.folder.empty()) return name;
    return (std::filesystem::path(place_.folder) / name).string();
  }
  std::size_t index_of(const Json& value, std::span<const std::string_view> names) const {
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) refuse(value, choice_rule(name, names, option_));
    return static_cast<std::size_t>(found - names.begin());
  }
  template <class T, class F>
  std::vector<T> list(const F& read_item) const {
    if (!value_.is_array()) refuse(value_, "need a list, each " + value_text(option_));
    std::vector<T> items;
    for (const Json& item : value_) items.push_back(read_item(item));
    return items;
  }

  const OptionRef& option_;
  const Json& value_;
  const ConfigPlace& place_;
};

}  // namespace

void read_json(const OptionRef& option, const Json& value, const ConfigPlace& place) {
  std::visit(Reader(option, value, place), option.value);
}

}  // namespace attnlab
