#pragma once

#include <string>
#include <vector>

#include "attnlab/core/dtype.h"
#include "attnlab/stats/scaling.h"

namespace attnlab {

// The scalings of a list, none twice. Throws InputError naming `scaling`.
std::vector<Scaling> parse_scalings(const std::vector<std::string>& texts);

// The same where there is no number of keys: scalings that depend on it are refused.
std::vector<Scaling> factor_or_function(const std::vector<std::string>& texts);

// Whether the scaling is no factor: qk_norm, cosine and softcap.
bool is_function(const Scaling& scaling);

// Whether it needs the lengths of q and k: qk_norm and cosine.
bool is_cosine(const Scaling& scaling);

// What a scaling that is no factor makes of the score q.k of d entries; `lengths` is |q| |k|.
double scaled_score(const Scaling& scaling, double score, double d, double lengths);

// A scaling in a sentence: "unscaled", "divided by sqrt(d_k)", "under critical".
std::string scaling_phrase(const std::string& name);

// Throws InputError when a list is empty or holds a value twice.
void require_list(const std::vector<Index>& list, const char* field);

}  // namespace attnlab
