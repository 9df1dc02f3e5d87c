# What run, test and lint share: finding or installing what a build needs, configuring, building.
# To be sourced. Everything here speaks on stderr only: stdout belongs to what is run afterwards.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

say() { echo "attnlab: $*" >&2; }
die() {
  say "$*"
  exit 2
}

# Debian and Ubuntu package, and what shows that the thing is there, from that package or not:
# a program (one of several) or a header.
needs="
  cmake               program  cmake
  g++                 program  c++ g++ clang++
  ninja-build         program  ninja make
  libcli11-dev        header   CLI/CLI.hpp
  libfmt-dev          header   fmt/format.h
  nlohmann-json3-dev  header   nlohmann/json.hpp
  libeigen3-dev       header   Eigen/Core eigen3/Eigen/Core
  libhwy-dev          header   hwy/highway.h
  zlib1g-dev          header   zlib.h
  catch2              header   catch2/catch.hpp catch2/catch_all.hpp"

has_program() {
  local name
  for name; do command -v "$name" >/dev/null && return; done
  return 1
}

# Asks the compiler, since it knows its own folders; CMAKE_PREFIX_PATH holds what others installed.
has_header() {
  local compiler name prefix include=()
  compiler=${CXX:-$(command -v c++ g++ clang++ | head -n 1)}
  [[ -n $compiler ]] || return 1
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do include+=("-I$prefix/include"); done
  for name; do
    $compiler "${include[@]}" -std=c++20 -x c++ -M -include "$name" /dev/null >/dev/null 2>&1 &&
      return
  done
  return 1
}

# missing_packages "LINES": the packages whose things are not there.
missing_packages() {
  local package kind things
  while read -r package kind things; do
    # shellcheck disable=SC2086  # things are several words
    if [[ -n $package ]] && ! "has_$kind" $things; then echo "$package"; fi
  done <<<"$1"
}

# apt_install WHY PACKAGE...: says what and why, and fails where there is no apt or no way to root.
apt_install() {
  local why=$1 as_root=()
  shift
  has_program apt-get || return
  if ((EUID != 0)); then
    has_program sudo || return
    as_root=(sudo)
  fi
  say "installing $* with ${as_root[*]:+sudo }apt-get: $why"
  local log
  log=$(mktemp)
  if ! {
    "${as_root[@]}" apt-get update &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y \
        --no-install-recommends "$@"
  } </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get failed, see $log"
    return 1
  fi
  rm "$log"
}

# Installs what a build misses. Where that cannot be, libraries are left to CMake, which looks
# further and fetches their sources, but programs have to be there.
set_up() {
  local missing programs
  mapfile -t missing < <(missing_packages "$needs")
  ((${#missing[@]})) || return 0
  if apt_install "the build needs them" "${missing[@]}"; then return; fi
  mapfile -t programs < <(missing_packages "$(grep -w program <<<"$needs")")
  if ((${#programs[@]})); then
    die "cannot build without ${programs[*]}; as root: apt-get install ${missing[*]}"
  fi
  say "${missing[*]} not found and not installable here: their sources are fetched instead"
}

# configure PRESET [-DOPTION...]: once; a folder that was moved or copied is configured anew.
configure() {
  local preset=$1 dir=$root/build/$1
  shift
  if [[ -f $dir/CMakeCache.txt ]] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
    rm -rf "$dir"
  fi
  if [[ -f $dir/build.ninja || -f $dir/Makefile ]] && has_options "$dir" "$@"; then return 0; fi
  set_up
  if [[ -z ${CMAKE_GENERATOR:-} && ! -f $dir/CMakeCache.txt ]] && has_program ninja; then
    export CMAKE_GENERATOR=Ninja
  fi
  say "configuring build/$preset"
  mkdir -p "$dir"
  # In a subshell: presets are looked for in the working directory, which is the caller's.
  if ! (cd "$root" && cmake --preset "$preset" "$@" </dev/null >"$dir/configure.log" 2>&1); then
    cat "$dir/configure.log" >&2
    die "could not configure build/$preset"
  fi
}

# The cache in DIR says the same as the options -DNAME=VALUE.
has_options() {
  local cache=$1/CMakeCache.txt option name
  shift
  for option; do
    name=${option#-D}
    grep -q "^${name%%=*}:[A-Z]*=${name#*=}$" "$cache" || return 1
  done
}

# build PRESET [TARGET...]: silent when there is nothing to do.
build() {
  local dir=$root/build/$1
  shift
  # One at a time: two builds in one folder would write the same files.
  {
    if has_program flock; then flock 9; fi
    cmake --build "$dir" --parallel "$(nproc)" ${1:+--target "$@"} </dev/null 9>&- 2>&1 |
      sed -u -e '/^ninja: no work to do/d' -e '/Built target/d' -e '/Re-checking globbed/d' \
        -e '/^ninja: Entering directory/d' >&2
  } 9>"$dir/.lock"
}
