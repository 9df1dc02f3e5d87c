#pragma once

#include "attnlab/experiments/compare.h"

namespace attnlab {

// compare() where one side is a case (io/case_file.h): every matrix that the other side has, in the
// order of computation, against the float64 reference. Throws InputError.
CompareResult compare_case(const CompareOptions& options);

}  // namespace attnlab
