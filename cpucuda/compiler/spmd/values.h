// Decides which values must be kept between regions, and where.
#pragma once

#include "cpucuda/compiler/spmd/kernel_shape.h"

namespace stride::cpucuda::spmd {

// Cheap functions of the thread index are computed again where they are used, so that addresses
// keep their form.
bool IsRecomputed(const Shape& shape, const llvm::Value* value, int depth = 0);

// Fills Shape::slots, and Region::scalar.
void PlaceValues(Shape& shape);

// True when the phi and the value are kept in one place, so that no copy is needed.
bool SameSlot(const Shape& shape, const llvm::Value* a, const llvm::Value* b);

}  // namespace stride::cpucuda::spmd
