#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/compare_row.h"
#include "attnlab/experiments/departure.h"
#include "attnlab/io/case_file.h"

namespace attnlab {

// One matrix of a case on the walk through it. Without a row the other side has none.
struct CaseStep {
  const CaseMatrix* matrix = nullptr;
  bool given = false;  // an input of the call
  std::optional<CompareRow> row;
  std::optional<Departure> departure;
  double got = 0, expected = 0;  // where it departs

  bool departs() const { return row && !row->equal; }
};

// The first step that departs, or the end.
std::vector<CaseStep>::const_iterator first_departing(const std::vector<CaseStep>& steps);

// What the walk shows: which matrix departs first, where, what agrees before and after it, and how
// large that is against the plain path; and of which matrices the tolerance tells nothing, since a
// careless answer would pass as well.
std::string case_verdict(const std::vector<CaseStep>& steps);

}  // namespace attnlab
