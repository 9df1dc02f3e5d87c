#pragma once

#include <span>
#include <string>
#include <vector>

#include "attnlab/stats/scaling.h"

namespace attnlab {

// The scalings of a list, none twice. Throws InputError naming `scaling`.
std::vector<Scaling> parse_scalings(const std::vector<std::string>& texts);

// The same where there is no number of keys: scalings that depend on it are refused.
std::vector<Scaling> factor_or_function(const std::vector<std::string>& texts);

// Whether the scaling is no factor: qk_norm, cosine and softcap.
bool is_function(const Scaling& scaling);

// What such a scaling makes of the score q.k.
double scaled_score(const Scaling& scaling, double score, std::span<const float> q,
                    std::span<const float> k);

// Throws InputError when a list is empty.
void require_list(std::size_t size, const char* field);

}  // namespace attnlab
