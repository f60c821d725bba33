#pragma once

#include <cstdint>

namespace stride::cuda {

// Device memory of our <cooperative_groups.h> for this_grid() (the other side is in
// compile/groups_header.cc). Written before each launch of a module that has it.
struct GridBarrier {
  uint32_t cooperative = 0;  // 0: sync() reports a fault and ends the thread
  uint32_t arrived = 0;      // blocks at the barrier
  uint32_t generation = 0;   // number of times that it has opened
  uint32_t unused = 0;
  uint64_t fault = 0;  // address of a codegen::RoutineFault
};
static_assert(sizeof(GridBarrier) == 24);

// The variable's symbol: that of stride_grid_barrier<0>, which exists only in code that uses it.
inline constexpr char kGridBarrierSymbol[] = "_Z19stride_grid_barrierILi0EE";

}  // namespace stride::cuda
