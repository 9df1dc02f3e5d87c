#pragma once

#include "attnlab/core/dtype.h"

namespace attnlab {

// C = A B + bias, all row-major, each row a stride after the one before it: parts of larger
// matrices too.
template <class T>
struct Product {
  Index rows = 0, depth = 0, columns = 0;
  const T* a = nullptr;  // [rows, depth]
  Index a_stride = 0;
  const T* b = nullptr;  // [depth, columns]
  Index b_stride = 0;
  const T* bias = nullptr;  // [columns], or none
  T* c = nullptr;           // [rows, columns]; overlaps no other
  Index c_stride = 0;
};

// Computes the product by the micro-kernel of the tiled attention, on what vectors the processor
// has. The right side is packed once for all rows (Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", 2008). Each sum over the depth runs in pieces of a fixed
// length, which are added up in order: an element has the same bits whatever else is computed
// beside it. Takes packed memory from the thread's workspace.
template <class T>
void multiply(const Product<T>& product);

}  // namespace attnlab
