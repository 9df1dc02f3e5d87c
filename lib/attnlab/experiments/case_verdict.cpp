#include "attnlab/experiments/case_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace attnlab {
namespace {

using Steps = std::span<const CaseStep>;

// "a, b and c"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

template <class F>
std::vector<std::string> names_where(Steps steps, const F& holds) {
  std::vector<std::string> names;
  for (const CaseStep& step : steps) {
    if (holds(step)) names.push_back(step.matrix->name);
  }
  return names;
}

bool agrees(const CaseStep& step) { return step.row && step.row->equal; }
// Inputs agree unless they are shown not to, and nobody needs to give them.
bool agrees_on_the_way(const CaseStep& step) { return agrees(step) && !step.given; }
bool is_missing(const CaseStep& step) { return !step.row && !step.given; }

std::string agree(const std::vector<std::string>& names) {
  return listed(names) + (names.size() == 1 ? " agrees" : " agree");
}

// Which step that leaves.
std::string what_it_shows(Steps before, const CaseStep& first) {
  if (first.given) return " It is an input: the two are not of the same call.";
  auto last = before.size();
  while (last > 0 && is_missing(before[last - 1])) --last;
  const std::vector<std::string> missing = names_where(before.subspan(last), is_missing);
  const std::vector<std::string> agreeing = names_where(before.first(last), agrees_on_the_way);
  const std::string step =
      first.matrix->formula.empty() ? "" : fmt::format(" = {}", first.matrix->formula);
  if (!missing.empty()) {
    return fmt::format(" {}{} not given: it arises there or in {}{}.",
                       agreeing.empty() ? "" : agree(agreeing) + " before it, ",
                       listed(missing) + (missing.size() == 1 ? " is" : " are"), first.matrix->name,
                       step);
  }
  if (agreeing.empty()) return fmt::format(" It arises in {}{}.", first.matrix->name, step);
  return fmt::format(" {} before it: it arises in {}{}.", agree(agreeing), first.matrix->name,
                     step);
}

std::string what_follows(Steps after) {
  const std::vector<std::string> apart =
      names_where(after, [](const CaseStep& step) { return step.departs(); });
  const std::vector<std::string> agreeing = names_where(after, agrees);
  std::string text;
  if (!apart.empty()) {
    text +=
        fmt::format(" After it {} {} apart, too", listed(apart), apart.size() == 1 ? "is" : "are");
    text += agreeing.empty() ? "." : "; " + agree(agreeing) + ".";
  } else if (!agreeing.empty()) {
    text += fmt::format(" After it {}.", agree(agreeing));
  }
  return text;
}

std::string departing(Steps before, const CaseStep& first, Steps after) {
  std::string text = fmt::format("The first matrix to depart from the float64 reference is {}",
                                 first.matrix->name);
  if (first.departure) text += ": " + first.departure->text();
  text +=
      fmt::format(". There it is {:.6g} where the reference is {:.6g}.", first.got, first.expected);
  // What is not finite on one side has no size to speak of.
  if (first.row->error_ratio && std::isfinite(first.got - first.expected)) {
    text += fmt::format(" Its largest error is {:.3g} times that of the plain path in {}.",
                        *first.row->error_ratio, *first.row->plain_dtype);
  }
  return text + what_it_shows(before, first) + what_follows(after);
}

std::string agreeing(Steps steps) {
  const CaseStep* worst = nullptr;
  for (const CaseStep& step : steps) {
    if (!step.row || !step.row->error_ratio) continue;
    if (worst == nullptr || *step.row->error_ratio > *worst->row->error_ratio) worst = &step;
  }
  std::vector<std::string> names = names_where(steps, agrees_on_the_way);
  if (names.empty()) names = names_where(steps, agrees);
  const std::string text = agree(names) + " with the float64 reference";
  if (worst == nullptr) return text + ".";
  return fmt::format("{}; {} largest error{} is {:.3g} times that of the plain path in {}.", text,
                     names.size() == 1 ? "its" : "the",
                     names.size() == 1 ? "" : " of " + worst->matrix->name,
                     *worst->row->error_ratio, *worst->row->plain_dtype);
}

std::string what_the_tolerance_misses(Steps steps) {
  const std::vector<std::string> names = names_where(steps, [](const CaseStep& step) {
    return agrees(step) && step.row->careless_passes.value_or(false);
  });
  if (names.empty()) return "";
  return fmt::format(
      " This tolerance tells nothing of {}: a careless answer, equal weights and so the mean of V, "
      "would pass, too.",
      listed(names));
}

}  // namespace

std::vector<CaseStep>::const_iterator first_departing(const std::vector<CaseStep>& steps) {
  return std::find_if(steps.begin(), steps.end(),
                      [](const CaseStep& step) { return step.departs(); });
}

std::string case_verdict(const std::vector<CaseStep>& steps) {
  const auto first = first_departing(steps);
  const auto place = static_cast<std::size_t>(first - steps.begin());
  const Steps all(steps);
  const std::string text = first == steps.end()
                               ? agreeing(all)
                               : departing(all.first(place), *first, all.subspan(place + 1));
  return text + what_the_tolerance_misses(all);
}

}  // namespace attnlab
