#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace attnlab::test {

// A row of tests/data/theory/*.txt: words separated by blanks, numbers where asked for ("nan" where
// there is none).
class TheoryRow {
 public:
  explicit TheoryRow(const std::string& line) {
    std::istringstream words(line);
    for (std::string word; words >> word;) words_.push_back(word);
  }
  double number(std::size_t column) const {
    return std::strtod(words_.at(column).c_str(), nullptr);
  }
  const std::string& word(std::size_t column) const { return words_.at(column); }

 private:
  std::vector<std::string> words_;
};

inline std::vector<TheoryRow> theory_table(const std::string& name) {
  std::ifstream file(std::string(ATTNLAB_TEST_DATA) + "/theory/" + name);
  std::vector<TheoryRow> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.front() != '#') rows.emplace_back(line);
  }
  if (rows.empty()) throw std::runtime_error("no table " + name);
  return rows;
}

}  // namespace attnlab::test
