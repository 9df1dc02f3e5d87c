#pragma once

#include "attnlab/core/field.h"
#include "attnlab/core/option_ref.h"
#include "attnlab/core/result_ref.h"

// The field list: one declaration an option, one a result column.
//
// An options struct has defaulted members and a static constexpr fields() that names each once:
//
//     struct Options {
//       Index n = 6;
//       MaskOptions mask;
//       static constexpr auto fields() {
//         return std::tuple(field("n", &Options::n, "queries", {.range = at_least<Index>(1)}),
//                           group("Masks", &Options::mask));
//       }
//     };
//
// options_of(options) turns the list into references that name, describe and hold every value
// without its struct's type: flags, config keys, schema, help, validation and the echo in results
// are written once, over those references. A result struct and its rows have the same kind of
// list, read through result_of(). The name is the config key, the column and, with dashes for
// underscores, the flag; the default is the member's initialiser.
