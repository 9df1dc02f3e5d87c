#include "save_attention_case.h"

#include "attnlab/experiments/save_case.h"
#include "attnlab/io/json.h"
#include "options/echo.h"

namespace attnlab {

void save_attention_case(const AttendOptions& options, const AttendResult& result) {
  if (!result.kept) return;
  AttendOptions rerun = case_options(options, result);
  Json config = {{"command", "attend"}};
  for (const OptionRef& option : options_of(rerun)) {
    if (!option.echo) continue;
    // An echo would have its path absolute; that of a config is relative to it.
    auto* const* source = std::get_if<TensorSource*>(&option.value);
    const bool file = source != nullptr && !(*source)->path.empty();
    const Json value = file ? Json((*source)->path) : option_to_json(option);
    if (!value.is_null()) config[std::string(option.name)] = value;
  }
  write_case(options.keep.save_case.path, result, dump_json(config) + "\n");
}

}  // namespace attnlab
