#include "attnlab/experiments/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/compare_case.h"
#include "attnlab/experiments/comparison.h"
#include "attnlab/experiments/rounding.h"
#include "attnlab/io/case_file.h"
#include "attnlab/io/result_file.h"

namespace attnlab {
namespace {

std::string file_of(const TensorSource& source, std::string_view name) {
  return source.values ? std::string(name) : source.path;
}

void add_compared(const ResultEntry& a, const ResultEntry& b, const CompareOptions& options,
                  CompareResult& result) {
  const bool lists = !a.places.empty() && !b.places.empty() && a.places != b.places &&
                     a.tensor.shape() == b.tensor.shape();
  if (lists || a.tensor.shape() != b.tensor.shape()) {
    throw InputError(
        file_of(options.a, "a"), a.name, a.tensor.shape().str(),
        lists ? fmt::format("its lists have other lengths in {}", file_of(options.b, "b"))
              : fmt::format("{} has {}: shapes must agree", file_of(options.b, "b"),
                            b.tensor.shape().str()));
  }
  const DType dtype = narrower(a.dtype(), b.dtype());
  const double least =
      std::max(default_tolerance(a.dtype()), default_tolerance(b.dtype()));  // 0 of integers
  Comparison comparison =
      compare_entries(a, b, dtype, {options.atol.value_or(least), options.rtol.value_or(least)});
  result.rows.push_back(std::move(comparison.row));
  if (!comparison.text_difference.empty()) {
    result.notes.push_back(std::move(comparison.text_difference));
  }
}

// Of what only one side has, every element is apart.
void add_one_sided(const ResultEntry& entry, std::string_view side, CompareResult& result) {
  CompareRow row;
  row.name = entry.name;
  row.shape = entry.tensor.shape().str();
  (side == "a" ? row.dtype_a : row.dtype_b) = dtype_name(entry.dtype());
  row.apart = entry.tensor.size();
  result.rows.push_back(std::move(row));
  result.notes.push_back(fmt::format("only {} has {}", side, entry.name));
}

void require_no_folder(const TensorSource& source, std::string_view name) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(source.path, ignored)) return;
  throw InputError("", name, source.path,
                   "is a folder and no case, which attend --save-case writes");
}

}  // namespace

CompareResult compare(const CompareOptions& options, const Request& /*want*/) {
  for (const auto& [source, name] : {std::pair{&options.a, "a"}, {&options.b, "b"}}) {
    if (source->empty()) throw InputError("", name, "", "is needed: two files to compare");
  }
  if (is_case(options.a.path) || is_case(options.b.path)) return compare_case(options);
  require_no_folder(options.a, "a");
  require_no_folder(options.b, "b");
  CompareResult result;
  const std::vector<ResultEntry> a = read_result(options.a, "a", result.notes);
  const std::vector<ResultEntry> b = read_result(options.b, "b", result.notes);
  const auto find = [](const std::vector<ResultEntry>& all, const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.name == name; });
  };
  if (a.size() == 1 && b.size() == 1) {
    add_compared(a[0], b[0], options, result);
  } else {
    const bool common = std::any_of(
        a.begin(), a.end(), [&](const auto& entry) { return find(b, entry.name) != b.end(); });
    if (!common) throw InputError(options.b.path, "b", "", "holds nothing of the names in a");
    for (const ResultEntry& entry : a) {
      const auto other = find(b, entry.name);
      if (other == b.end()) {
        add_one_sided(entry, "a", result);
      } else {
        add_compared(entry, *other, options, result);
      }
    }
    for (const ResultEntry& entry : b) {
      if (find(a, entry.name) == a.end()) add_one_sided(entry, "b", result);
    }
  }
  result.equal = std::all_of(result.rows.begin(), result.rows.end(),
                             [](const CompareRow& row) { return row.equal; });
  return result;
}

}  // namespace attnlab
