#include <hwy/nanobenchmark.h>

// The shared library of Highway 1.0 measures the timer whenever it is loaded, which takes longer
// than all else that happens before main(). Only its benchmarks want the figure, and there are none
// here: the symbols of a program come before those of the libraries it loads.
namespace hwy::platform {

uint64_t TimerResolution() { return 1; }

}  // namespace hwy::platform
