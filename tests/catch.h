#pragma once

// What differs between Catch2 3 and 2.13 stands here and in main.cpp.
#ifdef ATTNLAB_CATCH2_V3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
