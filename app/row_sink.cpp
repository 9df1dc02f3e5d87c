#include "row_sink.h"

#include "terminal.h"

namespace attnlab {

RowSink::RowSink(const std::string& path) {
  if (!path.empty()) file_.emplace(path, "output");
}

void RowSink::write(std::string_view line) {
  if (file_) {
    file_->write(line);
  } else {
    write_stdout(line);
  }
}

void RowSink::commit() {
  if (file_) file_->commit();
}

}  // namespace attnlab
