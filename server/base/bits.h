#pragma once

#include <bit>

namespace stride {

// Calls `visit` with the index of each set bit, the lowest first. `Bits` is unsigned.
template <typename Bits, typename Visit>
void ForEachBit(Bits bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) visit(std::countr_zero(bits));
}

}  // namespace stride
