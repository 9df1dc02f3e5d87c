#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "attnlab/io/atomic_file.h"

namespace attnlab {

// Where lines go that are written as soon as they are known: standard output, or a file that
// appears under its name once all are there.
class RowSink {
 public:
  // "" is standard output.
  explicit RowSink(const std::string& path);

  void write(std::string_view line);
  // Puts the file in its place.
  void commit();

 private:
  std::optional<AtomicFile> file_;
};

}  // namespace attnlab
