#pragma once

#include <string_view>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/experiments/layer_inputs.h"
#include "attnlab/experiments/multihead.h"

namespace attnlab {

// Of commands that look at attention as attend computes it or, where their options name a layer, as
// multihead does: Options has role, inputs, layer, sizes, positions, scores, mask and run
// as MultiheadOptions.

template <class Options>
bool names_a_layer(const Options& options) {
  return gives_layer_inputs(options.inputs) || !options.layer.params.empty() ||
         options.layer.d_model || options.role != Role::automatic;
}

template <class Options>
MultiheadOptions through_layer(const Options& options) {
  return {.role = options.role,
          .inputs = options.inputs,
          .past = {},
          .layer = options.layer,
          .sizes = options.sizes,
          .positions = options.positions,
          .scores = options.scores,
          .mask = options.mask,
          .gradients = {},
          .run = options.run};
}

// Throws InputError with `rule` naming the first of the options that was given: options that would
// change nothing may not be.
template <class S>
void require_defaults(const S& options, std::string_view rule) {
  S given = options, initial;
  const std::vector<OptionRef> refs = options_of(given), defaults = options_of(initial);
  if (const OptionRef* option = first_changed(refs, defaults)) {
    throw InputError("", option->name, value_of(*option), rule);
  }
}

}  // namespace attnlab
