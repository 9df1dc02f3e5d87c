#pragma once

#include <string>
#include <string_view>

#include "attnlab/core/tensor.h"

namespace attnlab {

// What the header of a .npy file says of the array behind it.
struct NpyHeader {
  DType dtype = DType::float64;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// Parses the header's text, a Python dictionary with the keys descr, fortran_order and shape, each
// once, in any order (numpy/lib/format.py). Throws InputError naming `source` and the key; types
// that are no tensors here (complex, structured, objects, texts) by their names.
NpyHeader parse_npy_header(std::string_view text, std::string_view source);

// Everything before the data of a version 1.0 file in C order, little endian, as NumPy writes it:
// magic, length, dictionary, spaces up to a multiple of 64 bytes. There is no bfloat16.
std::string npy_preamble(DType dtype, const Shape& shape);

}  // namespace attnlab
