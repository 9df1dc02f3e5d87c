#pragma once

#include "attnlab/attention/multi_head.h"

namespace attnlab {

// What scaled_dot_product asks of its arguments, checked without touching an element, for layers
// that would otherwise compute before they learn of it. Throws InputError as told there.
template <class T>
void require_attention(const Shape& q, const Shape& k, const Shape& v, const Mask& mask,
                       const AttentionSettings& settings, const Request& want);

// The same of multi_head, for a layer of these sizes and a past, null when there is none.
template <class T>
void require_multi_head(const Shape& query, const Shape& key, const Shape& value,
                        const MultiHeadShape& layer, const Past<T>* past, const Mask& mask,
                        const AttentionSettings& settings, const Request& want);

// Axis `axis` of tensor `name` and of tensor `other_name` is the same length, called `unit`. Throws
// InputError naming both tensors and both numbers.
void require_same(std::string_view name, const Shape& shape, std::string_view other_name,
                  const Shape& other, int axis, std::string_view unit);

}  // namespace attnlab
