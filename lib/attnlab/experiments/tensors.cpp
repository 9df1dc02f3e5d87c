#include "attnlab/experiments/tensors.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "attnlab/core/error.h"
#include "attnlab/io/tensor_list.h"

namespace attnlab {
namespace {

TensorsRow row_of(const TensorInfo& info) {
  TensorsRow row;
  if (!info.name.empty()) row.name = info.name;
  if (info.dtype.empty()) return row;
  row.dtype = info.dtype;
  row.shape = fmt::format("[{}]", fmt::join(info.shape, ", "));
  // Readers refuse shapes whose product overflows.
  row.elements =
      std::accumulate(info.shape.begin(), info.shape.end(), Index{1}, std::multiplies<>());
  row.bytes = static_cast<Index>(info.bytes);
  return row;
}

}  // namespace

TensorsResult tensors(const TensorsOptions& options, const Request& /*want*/) {
  if (options.file.empty()) throw InputError("", "file", "", "is needed: which one to look into");
  TensorsResult result;
  for (const TensorInfo& info : list_tensors(options.file.path, "file", result.notes)) {
    result.rows.push_back(row_of(info));
    result.elements += result.rows.back().elements.value_or(0);
    result.bytes += result.rows.back().bytes.value_or(0);
  }
  return result;
}

}  // namespace attnlab
