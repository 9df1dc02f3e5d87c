#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attnlab/core/tensor.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/input_file.h"
#include "attnlab/io/npy_header.h"

namespace attnlab {

// NumPy's array format (numpy/lib/format.py), versions 1.0 to 3.0, C and Fortran order, both byte
// orders: booleans, integers of 1 to 8 bytes, floats of 2, 4 and 8. Rank 0 to 4. Bytes behind the
// array are said in `notes`. Throws InputError naming the file; nothing is allocated before the
// file is known to hold what its header claims.
AnyTensor read_npy(const InputFile& file, std::vector<std::string>& notes);

// What the header of a .npy file says. Throws InputError.
NpyHeader read_npy_header(const InputFile& file);

// The same of a file that holds all elements, as read_npy() needs it; nothing of them is read.
NpyHeader read_checked_npy_header(const InputFile& file, std::vector<std::string>& notes);

// Where the elements begin, which the first 12 bytes tell. Throws InputError.
std::uint64_t npy_data_start(const InputFile& file);

// Version 1.0, C order, little endian, byte for byte as numpy.save writes it. NumPy has no
// bfloat16: it is written as float32, which holds every value of it exactly.
void write_npy(AtomicFile& file, const AnyTensor& tensor);

}  // namespace attnlab
