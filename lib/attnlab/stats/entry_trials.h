#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attnlab/stats/distributions.h"

namespace attnlab {

// out [trials, length], row i of it what fill_standard gives of trial first_trial + i: few values a
// trial are drawn much faster together. Throws InputError as fill_standard does.
void fill_standard_trials(std::span<float> out, std::size_t length, const EntryLaw& law,
                          std::uint64_t seed, Stream stream, std::uint64_t first_trial);

// The same of fill_entries.
void fill_entries_trials(std::span<float> out, std::size_t length, const EntryLaw& law,
                         std::uint64_t seed, Stream stream, std::uint64_t first_trial);

}  // namespace attnlab
