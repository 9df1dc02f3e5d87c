#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "attnlab/io/input_file.h"

namespace attnlab {

enum class TensorFormat { npy, npz, csv, tsv, json, safetensors };

// By the extension of `path`, in upper or lower case.
std::optional<TensorFormat> format_of_name(std::string_view path);

// By the first bytes of `file`, for what comes without a name: .npy, .npz and .safetensors by their
// magic numbers, JSON by its first bracket or brace, .tsv by a first line with tabs and no commas,
// .csv otherwise.
TensorFormat format_of_content(const InputFile& file);

// FILE or FILE:NAME.
struct SourceName {
  std::string path;
  std::string name;  // empty without one
};

// Splits at the last colon after which what stands before is a file or "-"; at the very last one
// when none is. A file whose own name has the colon wins.
SourceName split_source(const std::string& text);

}  // namespace attnlab
