#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"

namespace attnlab {

// A file to look into.
struct TensorsOptions {
  FilePath file;

  static constexpr auto fields() {
    using O = TensorsOptions;
    return std::tuple(field("file", &O::file,
                            ".npy, .npz, .safetensors, .csv, .tsv or .json; - is standard input",
                            {.unit = "FILE", .positional = true}));
  }
};

// One tensor of the file. What cannot be read has a name alone.
struct TensorsRow {
  std::optional<std::string> name;
  std::optional<std::string> dtype, shape;
  std::optional<Index> elements, bytes;

  static constexpr auto fields() {
    using R = TensorsRow;
    return std::tuple(
        field("name", &R::name, "what FILE:NAME calls it; undefined in a file without names"),
        field("dtype", &R::dtype,
              "type of its elements, as the file calls it where it is not read"),
        field("shape", &R::shape, "its shape"), field("elements", &R::elements, "how many"),
        field("bytes", &R::bytes, "what they take, inflated"));
  }
};

struct TensorsResult {
  std::vector<TensorsRow> rows;
  Index elements = 0, bytes = 0;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = TensorsResult;
    return std::tuple(field("rows", &R::rows, "one row a tensor, in the order of the file"),
                      field("elements", &R::elements, "in all of them"),
                      field("bytes", &R::bytes, "of all of them"));
  }
};

// Lists what a file holds; of formats with headers no more than these are read. Throws InputError.
TensorsResult tensors(const TensorsOptions& options, const Request& want);

}  // namespace attnlab
