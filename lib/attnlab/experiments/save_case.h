#pragma once

#include <string>

#include "attnlab/experiments/attend.h"

namespace attnlab {

// attend() with --save-case: the result keeps every matrix, and the case. Throws InputError also
// when the case cannot be written where it is to go.
AttendResult attend_and_keep(const AttendOptions& options, const Request& want);

// The options that give the result of `options` again from the files of its case, whose paths are
// relative to the folder. Without --save-case.
AttendOptions case_options(const AttendOptions& options, const AttendResult& result);

// Writes the case of `result` with `config`, the text of its config.json: whole or not at all.
// Throws InputError.
void write_case(const std::string& path, const AttendResult& result, const std::string& config);

}  // namespace attnlab
