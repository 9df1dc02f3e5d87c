// Catch2 3 brings its own main in a library; 2.13 makes it here.
#ifndef ATTNLAB_CATCH2_V3
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
