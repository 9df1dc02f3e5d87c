#pragma once

#include <span>

namespace attnlab {

// The largest magnitude of the values, 0 of none; infinity or NaN where there is one.
float largest_magnitude(std::span<const float> values);
double largest_magnitude(std::span<const double> values);

}  // namespace attnlab
