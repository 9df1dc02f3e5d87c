#pragma once

#include <vector>

#include "attnlab/core/describe.h"
#include "options/config.h"
#include "options/flags.h"
#include "options/origins.h"

namespace attnlab {

// All options of one run, and where each value came from: flag over config over default.
class OptionSet {
 public:
  explicit OptionSet(std::vector<OptionRef> options);

  const std::vector<OptionRef>& options() const { return options_; }
  const Origins& origins() const { return origins_; }

  // Takes the values of a config; an unknown key is an InputError with the nearest name.
  void apply(const Config& config);
  // Takes the values of the command line over what is there; those of other options are left.
  void apply(const FlagValues& flags);
  // Once both are in: throws InputError for the first number out of its range.
  void check_ranges() const;

 private:
  const OptionRef* find(std::string_view name) const;

  std::vector<OptionRef> options_;
  Origins origins_;
};

}  // namespace attnlab
