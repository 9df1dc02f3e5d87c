#pragma once

#include "attnlab/core/dtype.h"

namespace attnlab {

// Half a unit in the last place of 1; what is no float counts as float64, which holds it.
double unit_roundoff(DType dtype);

// The one with fewer digits.
DType narrower(DType a, DType b);

// How many numbers of `dtype` lie from a to b, both rounded to it first: 0 where they are the same
// number of it (0 and -0 are), 1 between neighbours. An infinity is the neighbour of the largest
// number. For floats; of neither NaN.
double ulps_between(double a, double b, DType dtype);

}  // namespace attnlab
