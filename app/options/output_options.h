#pragma once

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

enum class Format { automatic, table, json, jsonl, csv };
template <>
inline constexpr std::array<std::string_view, 5> kChoiceNames<Format> = {"auto", "table", "json",
                                                                         "jsonl", "csv"};

enum class Color { automatic, always, never };
template <>
inline constexpr std::array<std::string_view, 3> kChoiceNames<Color> = {"auto", "always", "never"};

// Where results go and how they look: the same for every command.
struct OutputOptions {
  std::vector<std::string> show = {"default"};
  NamedFiles save;
  bool trace = false;
  std::string tokens;
  Index digits = 4;
  Format format = Format::automatic;
  FilePath output;
  Color color = Color::automatic;
  bool quiet = false;

  static constexpr auto fields() {
    using O = OutputOptions;
    return std::tuple(
        field("show", &O::show, "matrices to print: names, all, none or default",
              {.unit = "NAME,..."}),
        field("save", &O::save, "write a named matrix as .npy, .csv, .tsv or .json; repeatable",
              {.unit = "NAME=FILE"}),
        field("trace", &O::trace, "print the whole calculation step by step"),
        field("tokens", &O::tokens, "words that name the positions, separated by spaces",
              {.unit = "TEXT"}),
        field("format", &O::format, "how the result is written; auto follows --output, else table",
              {.echo = false}),
        field("output", &O::output, "write the result to a file, whole or not at all",
              {.unit = "FILE", .echo = false}),
        field("digits", &O::digits, "significant digits in tables",
              {.range = between<Index>(1, 17), .echo = false}),
        field("color", &O::color, "colour in tables; auto colours a terminal only",
              {.echo = false}),
        field("quiet", &O::quiet, "no notes on standard error", {.echo = false}));
  }
};

// What a command that starts runs of others puts over theirs, and its help.
struct RunOverrides {
  Format format = Format::automatic;
  FilePath output;
  Index digits = OutputOptions().digits;
  Color color = Color::automatic;
  bool quiet = false;
  bool help = false;

  static constexpr auto fields() {
    using O = RunOverrides;
    return std::tuple(
        field("format", &O::format, "how results are written; auto follows --output, else table"),
        field("output", &O::output, "write the results to one file, whole or not at all"),
        field("digits", &O::digits, "significant digits in tables",
              {.range = between<Index>(1, 17)}),
        field("color", &O::color, "colour in tables; auto colours a terminal only"),
        field("quiet", &O::quiet, "no notes on standard error"),
        field("help", &O::help, "print this and exit"));
  }
};

}  // namespace attnlab
