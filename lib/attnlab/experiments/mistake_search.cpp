#include "attnlab/experiments/mistake_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "attnlab/core/threads.h"

namespace attnlab {
namespace {

// What pairs may cost in the rows that most of them fail in.
constexpr double kLargestPairWork = 0x1p35;
// What 16-bit sums may cost: every one of them is rounded, at about 10 ns.
constexpr double kLargestRoundedWork = 0x1p26;
// Errors of rounding are as large as the model's within this factor: their order is unknown.
constexpr double kRoundingFactor = 4;

bool rounds(const Mistake& mistake) { return mistake.aspect == Aspect::accumulator; }

AttentionVariant with(AttentionVariant call, const std::vector<const Mistake*>& mistakes) {
  for (const Mistake* mistake : mistakes) mistake->make(call);
  return call;
}

// Blocks evenly spread over all rows, of no more than that work.
std::vector<QueryBlock> sampled(const AttentionVariant& variant, double most) {
  std::vector<QueryBlock> blocks = row_blocks(variant);
  const auto affordable = static_cast<std::size_t>(
      std::max(1.0, most / variant.work() * static_cast<double>(blocks.size())));
  if (affordable >= blocks.size()) return blocks;
  std::vector<QueryBlock> sample;
  sample.reserve(affordable);
  for (std::size_t i = 0; i < affordable; ++i) {
    sample.push_back(blocks[i * blocks.size() / affordable]);
  }
  return sample;
}

// How large errors against the same rows are.
struct ErrorSize {
  double squares = 0, elements = 0, rows_apart = 0;

  void add(std::span<const double> a, std::span<const double> b, double tolerance) {
    bool apart = false;
    for (std::size_t x = 0; x < a.size(); ++x) {
      const double error = Candidate::distance(a[x], b[x]);
      squares += error * error;
      apart = apart || error > tolerance;
    }
    elements += static_cast<double>(a.size());
    if (apart) ++rows_apart;
  }
  double rms() const { return elements == 0 ? 0 : std::sqrt(squares / elements); }
};

// Whether rounding every sum of `base` as `mistake` does takes it as far as the candidate is.
// Errors of rounding are in all rows: those in few come from elsewhere.
std::optional<RoundingSize> explained_by_size(const AttentionVariant& base, const Mistake& mistake,
                                              const Candidate& candidate) {
  const std::vector<QueryBlock> blocks = sampled(base, kLargestRoundedWork);
  std::vector<std::vector<double>> exact;
  ErrorSize of_candidate, of_model;
  visit_rows(base, blocks, [&](Index row, std::span<const double> values) {
    of_candidate.add(candidate.row(row), values, candidate.tolerance());
    exact.emplace_back(values.begin(), values.end());
    return true;
  });
  std::size_t next = 0;
  visit_rows(with(base, {&mistake}), blocks, [&](Index, std::span<const double> values) {
    of_model.add(values, exact[next++], candidate.tolerance());
    return true;
  });
  const RoundingSize size{of_candidate.rms(), of_model.rms()};
  const bool alike = size.candidate > 0 && size.candidate <= kRoundingFactor * size.model &&
                     size.model <= kRoundingFactor * size.candidate &&
                     of_model.rows_apart <= 2 * of_candidate.rows_apart;
  if (!alike) return std::nullopt;
  return size;
}

class Search {
 public:
  Search(const AttentionVariant& asked, const Candidate& candidate, const Tensor<double>& exact,
         Index threads)
      : asked_(asked), candidate_(candidate), exact_(exact), threads_(threads) {}

  std::vector<Finding> run(std::vector<std::string>& notes) {
    try_alone();
    if (explained()) return std::move(findings_);
    find_rounding(findings_.front());
    if (explained()) return std::move(findings_);
    try_pairs(notes);
    if (explained()) return std::move(findings_);
    const Finding nearest = *std::min_element(findings_.begin(), findings_.end(), nearer);
    if (!nearest.mistakes.empty()) find_rounding(nearest);
    return std::move(findings_);
  }

 private:
  bool explained() const {
    return std::any_of(findings_.begin(), findings_.end(),
                       [](const Finding& finding) { return finding.explains; });
  }

  void look_at(Finding& finding) const {
    const AttentionVariant variant = with(asked_, finding.mistakes);
    const bool rounding = !finding.mistakes.empty() && rounds(*finding.mistakes.back());
    const std::vector<QueryBlock> blocks =
        rounding ? sampled(variant, kLargestRoundedWork) : row_blocks(variant);
    finding.difference = candidate_.difference(variant, blocks, exact_);
    finding.as_asked = finding.difference.from_asked <= candidate_.tolerance();
    finding.explains = !finding.difference.departure && !(rounding && finding.as_asked);
  }

  void try_alone() {
    findings_.emplace_back();
    for (const Mistake& mistake : all_mistakes()) {
      if (mistake.applies(asked_)) findings_.emplace_back().mistakes = {&mistake};
    }
    parallel_for(threads_, static_cast<Index>(findings_.size()),
                 [&](Index i) { look_at(findings_[static_cast<std::size_t>(i)]); });
    // What gives the same as what was asked for is not to blame.
    if (!findings_.front().explains) return;
    for (std::size_t i = 1; i < findings_.size(); ++i) findings_[i].explains = false;
  }

  // Sums in 16 bits, on top of what `base` has.
  void find_rounding(const Finding& base) {
    const std::vector<const Mistake*> before = base.mistakes;
    const AttentionVariant variant = with(asked_, before);
    for (const Mistake& mistake : all_mistakes()) {
      if (!rounds(mistake)) continue;
      const auto size = explained_by_size(variant, mistake, candidate_);
      if (!size) continue;
      Finding& finding = before.empty() ? alone(mistake) : add_pair(*before[0], mistake);
      finding.rounding = size;
      finding.explains = true;
    }
    keep_likeliest_rounding();
  }

  Finding& alone(const Mistake& mistake) {
    return *std::find_if(findings_.begin(), findings_.end(), [&](const Finding& finding) {
      return finding.mistakes.size() == 1 && finding.mistakes[0] == &mistake;
    });
  }
  Finding& add_pair(const Mistake& a, const Mistake& b) {
    Finding& finding = findings_.emplace_back();
    finding.mistakes = {&a, &b};
    look_at(finding);
    return finding;
  }

  // Of two formats the one whose error is nearer in size.
  void keep_likeliest_rounding() {
    Finding* likeliest = nullptr;
    const auto off = [](const Finding& finding) {
      return std::abs(std::log(finding.rounding->candidate / finding.rounding->model));
    };
    for (Finding& finding : findings_) {
      if (!finding.rounding) continue;
      if (likeliest == nullptr || off(finding) < off(*likeliest)) likeliest = &finding;
    }
    for (Finding& finding : findings_) {
      if (finding.rounding && &finding != likeliest) finding.explains = false;
    }
  }

  std::vector<Finding> pairs() const {
    std::vector<Finding> pairs;
    for (const Mistake& a : all_mistakes()) {
      if (!a.applies(asked_) || rounds(a)) continue;
      const AttentionVariant call = with(asked_, {&a});
      for (const Mistake* b = &a + 1; b != &all_mistakes().back() + 1; ++b) {
        if (b->aspect == a.aspect || rounds(*b) || !b->applies(call)) continue;
        pairs.emplace_back().mistakes = {&a, b};
      }
    }
    return pairs;
  }

  void try_pairs(std::vector<std::string>& notes) {
    std::vector<Finding> all = pairs();
    const Index row = findings_.front().difference.worst_row, n = asked_.queries();
    // Most pairs fail in the row that is furthest from what was asked for.
    const QueryBlock worst{row / n / asked_.heads(), row % n, row % n + 1};
    const double work = asked_.work() / static_cast<double>(asked_.batch() * n);
    if (work * static_cast<double>(all.size()) > kLargestPairWork) {
      notes.emplace_back(
          "pairs of mistakes were not tried: give some of the heads or keys for these");
      return;
    }
    parallel_for(threads_, static_cast<Index>(all.size()), [&](Index i) {
      Finding& pair = all[static_cast<std::size_t>(i)];
      if (!candidate_.equals(with(asked_, pair.mistakes), worst)) return;
      look_at(pair);
    });
    std::copy_if(all.begin(), all.end(), std::back_inserter(findings_),
                 [](const Finding& pair) { return pair.explains; });
  }

  const AttentionVariant& asked_;
  const Candidate& candidate_;
  const Tensor<double>& exact_;
  Index threads_;
  std::vector<Finding> findings_;
};

std::string joined(const std::vector<const Mistake*>& mistakes, std::string_view Mistake::*text,
                   const AttentionVariant& asked) {
  std::vector<std::string> parts;
  parts.reserve(mistakes.size());
  for (const Mistake* mistake : mistakes) parts.push_back(mistake_text(mistake->*text, asked));
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

std::string Finding::name() const {
  if (mistakes.empty()) return "correct";
  std::vector<std::string_view> names;
  names.reserve(mistakes.size());
  for (const Mistake* mistake : mistakes) names.push_back(mistake->name);
  return fmt::format("{}", fmt::join(names, " + "));
}

std::string Finding::found(const AttentionVariant& asked) const {
  if (mistakes.empty()) return "what was asked for";
  return joined(mistakes, &Mistake::found, asked);
}
std::string Finding::asked(const AttentionVariant& asked) const {
  return joined(mistakes, &Mistake::asked, asked);
}
std::string Finding::last_found(const AttentionVariant& asked) const {
  return joined({mistakes.back()}, &Mistake::found, asked);
}
std::string Finding::found_before(const AttentionVariant& asked) const {
  return joined({mistakes.begin(), mistakes.end() - 1}, &Mistake::found, asked);
}

bool nearer(const Finding& a, const Finding& b) {
  const auto key = [](const Finding& f) {
    const bool rounding = !f.mistakes.empty() && rounds(*f.mistakes.back());
    const bool aside = !f.explains && !f.mistakes.empty() && (f.as_asked || rounding);
    return std::tuple(!f.explains, aside, f.explains ? 0 : f.difference.rms());
  };
  return key(a) < key(b);
}

std::vector<Finding> find_mistakes(const AttentionVariant& asked, const Candidate& candidate,
                                   const Tensor<double>& exact, Index threads,
                                   std::vector<std::string>& notes) {
  return Search(asked, candidate, exact, threads).run(notes);
}

}  // namespace attnlab
