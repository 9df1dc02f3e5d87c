#include "attnlab/experiments/row_sampler.h"

#include "attnlab/stats/entry_trials.h"

namespace attnlab {

RowSampler::RowSampler(const EntryLaw& law, Index keys, std::uint64_t seed, Index point)
    : law_(law),
      keys_(static_cast<std::uint64_t>(keys)),
      seed_(seed),
      point_(static_cast<std::uint64_t>(point)) {}

void RowSampler::query(std::uint64_t trial, std::span<float> q) const {
  fill_entries(q, law_, seed_, stream_at(Stream::sample_q, point_), trial);
}

void RowSampler::queries(std::uint64_t trial, std::size_t d, std::span<float> q) const {
  fill_entries_trials(q, d, law_, seed_, stream_at(Stream::sample_q, point_), trial);
}

void RowSampler::keys(std::uint64_t set, std::size_t first, std::size_t d,
                      std::span<float> k) const {
  const Stream stream = stream_at(Stream::sample_k, point_);
  fill_entries_trials(k, d, law_, seed_, stream, set * keys_ + first);
}

void RowSampler::values(std::uint64_t set, std::size_t first, std::size_t d,
                        std::span<float> v) const {
  const Stream stream = stream_at(Stream::sample_v, point_);
  fill_entries_trials(v, d, law_, seed_, stream, set * keys_ + first);
}

void RowSampler::cotangent(std::uint64_t trial, std::span<float> grad_output) const {
  fill_normal(grad_output, seed_, stream_at(Stream::sample_grad_output, point_), trial);
}

void RowSampler::logits(std::uint64_t trial, std::span<float> z) const {
  fill_normal(z, seed_, stream_at(Stream::sample_logits, point_), trial);
}

}  // namespace attnlab
