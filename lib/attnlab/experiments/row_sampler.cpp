#include "attnlab/experiments/row_sampler.h"

namespace attnlab {

RowSampler::RowSampler(const EntryLaw& law, Index keys, std::uint64_t seed, Index point)
    : law_(law),
      keys_(static_cast<std::uint64_t>(keys)),
      seed_(seed),
      point_(static_cast<std::uint64_t>(point)) {}

std::uint64_t RowSampler::number(std::uint64_t set, Index j) const {
  return set * keys_ + static_cast<std::uint64_t>(j);
}

void RowSampler::query(std::uint64_t trial, std::span<float> q) const {
  fill_entries(q, law_, seed_, stream_at(Stream::sample_q, point_), trial);
}

void RowSampler::key(std::uint64_t set, Index j, std::span<float> k) const {
  fill_entries(k, law_, seed_, stream_at(Stream::sample_k, point_), number(set, j));
}

void RowSampler::value(std::uint64_t set, Index j, std::span<float> v) const {
  fill_entries(v, law_, seed_, stream_at(Stream::sample_v, point_), number(set, j));
}

void RowSampler::cotangent(std::uint64_t trial, std::span<float> grad_output) const {
  fill_normal(grad_output, seed_, stream_at(Stream::sample_grad_output, point_), trial);
}

void RowSampler::logits(std::uint64_t trial, std::span<float> z) const {
  fill_normal(z, seed_, stream_at(Stream::sample_logits, point_), trial);
}

}  // namespace attnlab
