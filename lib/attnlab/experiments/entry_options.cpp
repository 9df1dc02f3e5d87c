#include "attnlab/experiments/entry_options.h"

#include <fmt/format.h>

#include "attnlab/core/error.h"

namespace attnlab {

EntryLaw entry_law(const EntryOptions& options, double mean) {
  EntryLaw law{options.distribution, EntryLaw().nu, options.sigma, mean};
  if (options.nu) {
    if (options.distribution != Distribution::student_t) {
      throw InputError("", "nu", fmt::format("{}", *options.nu),
                       "is of the distribution student_t only");
    }
    law.nu = *options.nu;
  }
  law.check();
  return law;
}

}  // namespace attnlab
