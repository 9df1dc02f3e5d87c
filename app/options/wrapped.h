#pragma once

#include <string>
#include <string_view>

namespace attnlab {

// `text` with its lines broken at spaces to fit `width` columns, all but the first indented.
std::string wrapped(std::string_view text, int width, int indent);

}  // namespace attnlab
