#pragma once

// What differs between Catch2 3 and 2.13 stands here and in main.cpp.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
