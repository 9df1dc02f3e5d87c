#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "cli/run_binary.h"

namespace attnlab {

// The result of a command that must succeed, as JSON.
inline nlohmann::ordered_json result_of_run(std::vector<std::string> arguments,
                                            const Surroundings& surroundings = {}) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = attnlab(arguments, surroundings);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  return nlohmann::ordered_json::parse(outcome.out);
}

// The numbers of nested arrays, row by row.
inline std::vector<double> numbers(const nlohmann::ordered_json& value) {
  if (value.is_number()) return {value.get<double>()};
  if (value == "NaN") return {std::nan("")};
  if (value == "Infinity") return {std::numeric_limits<double>::infinity()};
  if (value == "-Infinity") return {-std::numeric_limits<double>::infinity()};
  std::vector<double> all;
  for (const auto& element : value) {
    for (const double number : numbers(element)) all.push_back(number);
  }
  return all;
}

inline void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                        double tolerance = 1e-6) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i] == Approx(expected[i]).margin(tolerance));
  }
}

// A command that must be refused: exit 2, nothing on stdout, one line on stderr with all of
// `parts`.
inline void check_refused(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& parts,
                          const Surroundings& surroundings = {}) {
  const Outcome outcome = attnlab(arguments, surroundings);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  REQUIRE_FALSE(outcome.err.empty());
  CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  for (const std::string& part : parts) CHECK(outcome.err.find(part) != std::string::npos);
}

}  // namespace attnlab
