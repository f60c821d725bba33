#pragma once

#include "server/ops/scalar.h"

namespace stride::ops {

// Of a float's significand, or of a complex number's parts; 53 for other types, as a double has.
int MantissaBits(DType dtype);

// Whether a number given for a place of type `to`, such as a kernel's parameter, keeps its value. A
// weak real may be rounded, as NumPy rounds Python's floats; one that says it is a float64 may not.
bool LosesNothing(const ScalarOperand& scalar, DType to);

}  // namespace stride::ops
