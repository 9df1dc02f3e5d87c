#pragma once

#include <string_view>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

// Of the rows of a result the columns of these names, in this order.
RowsRef chosen_columns(const RowsRef& rows, const std::vector<std::string_view>& names);

}  // namespace attnlab
