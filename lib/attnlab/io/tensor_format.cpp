#include "attnlab/io/tensor_format.h"

#include <array>
#include <filesystem>
#include <utility>

#include "attnlab/core/text.h"

namespace attnlab {
namespace {

bool exists(const std::string& path) {
  std::error_code error;
  return path == "-" || std::filesystem::exists(path, error);
}

// A header length below the format's limit, then the header's brace.
bool looks_like_safetensors(std::string_view start) {
  return start.size() > 8 && start[8] == '{' && start[4] == 0 && start[5] == 0 && start[6] == 0 &&
         start[7] == 0;
}

}  // namespace

std::optional<TensorFormat> format_of_name(std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, TensorFormat>, 6> kExtensions = {
      {{".npy", TensorFormat::npy},
       {".npz", TensorFormat::npz},
       {".csv", TensorFormat::csv},
       {".tsv", TensorFormat::tsv},
       {".json", TensorFormat::json},
       {".safetensors", TensorFormat::safetensors}}};
  const std::string extension = lower_case(std::filesystem::path(path).extension().string());
  for (const auto& [known, format] : kExtensions) {
    if (extension == known) return format;
  }
  return std::nullopt;
}

TensorFormat format_of_content(const InputFile& file) {
  const std::string head = file.head(4096);
  std::string_view start = head;
  if (start.substr(0, 6) == "\x93NUMPY") return TensorFormat::npy;
  if (start.substr(0, 4) == "PK\x03\x04") return TensorFormat::npz;
  if (looks_like_safetensors(start)) return TensorFormat::safetensors;
  if (start.substr(0, 3) == "\xEF\xBB\xBF") start.remove_prefix(3);
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (start[first] == '[' || start[first] == '{')) {
    return TensorFormat::json;
  }
  const std::string_view line = start.substr(0, start.find('\n'));
  const bool tabs = line.find('\t') != std::string_view::npos;
  return tabs && line.find(',') == std::string_view::npos ? TensorFormat::tsv : TensorFormat::csv;
}

SourceName split_source(const std::string& text) {
  if (exists(text)) return {text, ""};
  const std::size_t last = text.rfind(':');
  if (last == std::string::npos) return {text, ""};
  for (std::size_t colon = last; colon != std::string::npos && colon > 0;
       colon = text.rfind(':', colon - 1)) {
    const std::string path = text.substr(0, colon);
    if (exists(path)) return {path, text.substr(colon + 1)};
  }
  return {text.substr(0, last), text.substr(last + 1)};
}

}  // namespace attnlab
