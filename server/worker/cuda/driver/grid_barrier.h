#pragma once

#include <cstdint>

namespace stride::cuda {

// What our <cooperative_groups.h> keeps in device memory for this_grid() (compile/groups_header.cc
// has the other side). Written before each launch of a module that has it.
struct GridBarrier {
  uint32_t cooperative = 0;  // 0: sync() notes a fault and ends the thread
  uint32_t arrived = 0;      // blocks at the barrier
  uint32_t generation = 0;   // times that it has opened
  uint32_t unused = 0;
  uint64_t fault = 0;  // address of a codegen::RoutineFault
};
static_assert(sizeof(GridBarrier) == 24);

// The variable's symbol: that of stride_grid_barrier<0>, which exists only in code that uses it.
inline constexpr char kGridBarrierSymbol[] = "_Z19stride_grid_barrierILi0EE";

}  // namespace stride::cuda
