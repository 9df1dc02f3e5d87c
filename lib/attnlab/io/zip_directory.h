#pragma once

#include <vector>

#include "attnlab/io/zip_file.h"

namespace attnlab {

// The members of a zip file, in the order of the file, checked as ZipFile says. Throws InputError.
std::vector<ZipMember> read_zip_directory(const InputFile& file);

}  // namespace attnlab
