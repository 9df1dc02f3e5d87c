#include "options/echo.h"

#include <filesystem>

#include "options/overloaded.h"

namespace attnlab {
namespace {

Json text_json(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json path_json(const std::string& path) {
  if (path.empty()) return nullptr;
  if (path == "-" || path.starts_with("-:")) return path;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return text_json(error ? path : absolute.string());
}

Json tensor_source_json(const TensorSource& source) {
  return source.values ? tensor_to_json(*source.values) : path_json(source.path);
}

// One name may be saved to several files.
Json named_files_json(const NamedFiles& files) {
  Json object = Json::object();
  for (const NamedFile& file : files) {
    const Json path = path_json(file.path);
    const std::string name = text_json(file.name).get<std::string>();
    if (!object.contains(name)) {
      object[name] = path;
    } else {
      if (!object[name].is_array()) object[name] = Json::array({object[name]});
      object[name].push_back(path);
    }
  }
  return object;
}

template <class T, class F>
Json list_json(const std::vector<T>& list, const F& item_json) {
  Json array = Json::array();
  for (const T& item : list) array.push_back(item_json(item));
  return array;
}

template <class T, class F>
Json optional_json(const std::optional<T>& value, const F& to_json) {
  return value ? to_json(*value) : Json(nullptr);
}

}  // namespace

Json option_to_json(const OptionRef& option) {
  const auto same = [](const auto& value) { return Json(value); };
  const auto path = [](const FilePath& file) { return path_json(file.path); };
  return std::visit(
      Overloaded{
          [](bool* value) { return Json(*value); },
          [](Index* value) { return Json(*value); },
          [](std::uint64_t* value) { return Json(*value); },
          [](double* value) { return number_to_json(*value); },
          [](std::string* value) { return text_json(*value); },
          [&](std::optional<bool>* value) { return optional_json(*value, same); },
          [&](std::optional<Index>* value) { return optional_json(*value, same); },
          [](std::optional<double>* value) { return optional_json(*value, number_to_json); },
          [&](std::vector<Index>* list) { return list_json(*list, same); },
          [](std::vector<double>* list) { return list_json(*list, number_to_json); },
          [](std::vector<std::string>* list) { return list_json(*list, text_json); },
          [](WordOrNumber* value) {
            return value->is_number() ? number_to_json(value->number) : Json(value->word);
          },
          [&](FilePath* value) { return path(*value); },
          [&](std::vector<FilePath>* list) { return list_json(*list, path); },
          [](TensorSource* value) { return tensor_source_json(*value); },
          [](NamedFiles* value) { return named_files_json(*value); },
          [](const ChoiceRef& choice) {
            return Json(choice.names[static_cast<std::size_t>(choice.get(choice.object))]);
          },
          [](const ChoiceListRef& choice) {
            return list_json(choice.get(choice.object), [&](int i) {
              return Json(choice.names[static_cast<std::size_t>(i)]);
            });
          },
      },
      option.value);
}

Json options_to_json(const std::vector<OptionRef>& options) {
  Json object = Json::object();
  for (const OptionRef& option : options) {
    if (option.echo) object[std::string(option.name)] = option_to_json(option);
  }
  return object;
}

}  // namespace attnlab
