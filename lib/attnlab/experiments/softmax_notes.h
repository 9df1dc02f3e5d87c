#pragma once

#include <string>
#include <vector>

#include "attnlab/experiments/softmax_input.h"

namespace attnlab {

// What `method` makes of the rows that a reader would stumble over: for stable rows without a
// finite logit, or with NaN or +infinity; for naive the exponentials that overflow or vanish.
template <class T>
void add_softmax_notes(SoftmaxMethod method, const RowsOf<T>& x, double temperature,
                       std::vector<std::string>& notes);

}  // namespace attnlab
