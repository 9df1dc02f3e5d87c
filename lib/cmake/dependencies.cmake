# The libraries attnlab stands on: those installed, or their sources where there are none. A
# download can be replaced by a folder: -DFETCHCONTENT_SOURCE_DIR_FMT=... and so on.
include(FetchContent)

# The headers of a fetched library are not ours to warn about.
function(attnlab_system_headers target)
  get_target_property(aliased ${target} ALIASED_TARGET)
  if(aliased)
    set(target ${aliased})
  endif()
  get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set_target_properties(${target} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${directories}")
endfunction()

# Eigen's own build is tests and Fortran: of its sources only the headers are wanted.
FetchContent_Declare(
  Eigen3
  GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git
  GIT_TAG 3.4.0
  GIT_SHALLOW TRUE
  SOURCE_SUBDIR headers-only
  FIND_PACKAGE_ARGS 3.4 NO_MODULE)
FetchContent_Declare(
  nlohmann_json
  GIT_REPOSITORY https://github.com/nlohmann/json.git
  GIT_TAG v3.11.3
  GIT_SHALLOW TRUE
  FIND_PACKAGE_ARGS 3.11)
FetchContent_Declare(
  fmt
  GIT_REPOSITORY https://github.com/fmtlib/fmt.git
  GIT_TAG 10.1.1
  GIT_SHALLOW TRUE
  FIND_PACKAGE_ARGS)
FetchContent_Declare(
  CLI11
  GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
  GIT_TAG v2.4.1
  GIT_SHALLOW TRUE
  FIND_PACKAGE_ARGS 2.1)
FetchContent_Declare(
  hwy
  GIT_REPOSITORY https://github.com/google/highway.git
  GIT_TAG 1.0.7
  GIT_SHALLOW TRUE
  FIND_PACKAGE_ARGS 1.0.3)
FetchContent_Declare(
  ZLIB
  GIT_REPOSITORY https://github.com/madler/zlib.git
  GIT_TAG v1.3.1
  GIT_SHALLOW TRUE
  FIND_PACKAGE_ARGS 1.2.9)
FetchContent_Declare(
  Catch2
  GIT_REPOSITORY https://github.com/catchorg/Catch2.git
  GIT_TAG v3.7.1
  GIT_SHALLOW TRUE
  FIND_PACKAGE_ARGS)

# What we install is ours alone.
set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
set(JSON_Install OFF)
set(FMT_INSTALL OFF)
set(CLI11_INSTALL OFF)
set(HWY_ENABLE_INSTALL OFF)
set(HWY_ENABLE_EXAMPLES OFF)
set(HWY_ENABLE_TESTS OFF)
set(SKIP_INSTALL_ALL ON)
set(ZLIB_BUILD_EXAMPLES OFF)
FetchContent_MakeAvailable(Eigen3 nlohmann_json fmt CLI11 hwy ZLIB)
# Its own build calls the target hwy, the installed one hwy::hwy.
if(NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS hwy)
endif()
# zlib's own build names no folders to its users, and writes zconf.h.
if(NOT TARGET ZLIB::ZLIB)
  target_include_directories(zlibstatic INTERFACE ${zlib_SOURCE_DIR} ${zlib_BINARY_DIR})
  add_library(ZLIB::ZLIB ALIAS zlibstatic)
endif()
if(NOT TARGET Eigen3::Eigen)
  add_library(attnlab_eigen INTERFACE)
  target_include_directories(attnlab_eigen SYSTEM INTERFACE ${eigen3_SOURCE_DIR})
  add_library(Eigen3::Eigen ALIAS attnlab_eigen)
endif()
set(ATTNLAB_FETCHED "")
foreach(package Eigen3 nlohmann_json fmt CLI11 hwy ZLIB)
  if(NOT ${package}_FOUND)
    list(APPEND ATTNLAB_FETCHED ${package})
  endif()
endforeach()
foreach(target nlohmann_json::nlohmann_json fmt::fmt CLI11::CLI11 hwy::hwy ZLIB::ZLIB)
  attnlab_system_headers(${target})
endforeach()

if(ATTNLAB_BUILD_TESTS)
  FetchContent_MakeAvailable(Catch2)
  attnlab_system_headers(Catch2::Catch2)
  # Where Catch.cmake is: known to find_package, under extras or (2.13) contrib in the sources.
  if(NOT Catch2_FOUND)
    list(APPEND CMAKE_MODULE_PATH ${catch2_SOURCE_DIR}/extras ${catch2_SOURCE_DIR}/contrib)
  endif()
endif()
