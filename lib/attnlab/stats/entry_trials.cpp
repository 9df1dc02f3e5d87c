#include "attnlab/stats/entry_trials.h"

namespace attnlab {

void fill_standard_trials(std::span<float> out, std::size_t length, const EntryLaw& law,
                          std::uint64_t seed, Stream stream, std::uint64_t first_trial) {
  if (law.distribution == Distribution::normal) {
    return fill_normal_trials(out, length, seed, stream, first_trial);
  }
  for (std::size_t row = 0; row < out.size(); row += length) {
    fill_standard(out.subspan(row, length), law, seed, stream, first_trial++);
  }
}

void fill_entries_trials(std::span<float> out, std::size_t length, const EntryLaw& law,
                         std::uint64_t seed, Stream stream, std::uint64_t first_trial) {
  fill_standard_trials(out, length, law, seed, stream, first_trial);
  apply_scale(out, law);
}

}  // namespace attnlab
