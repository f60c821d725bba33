#pragma once

#include "server/ops/scalar.h"

namespace stride::ops {

// Bits of a float's significand, or of a complex number's parts; 53, a double's, for other types.
int MantissaBits(DType dtype);

// Returns whether a number keeps its value in type `to`, for example as a kernel's parameter. A
// weak real may be rounded, as NumPy rounds Python's floats; a typed float64 may not.
bool LosesNothing(const ScalarOperand& scalar, DType to);

}  // namespace stride::ops
