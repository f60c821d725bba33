#pragma once

#include "absl/container/inlined_vector.h"
#include "stride/v1/operation.pb.h"

namespace stride::ops {

// As CollectOperands and CollectOutputs (plan.h), in the same order, without the fields' paths:
// those are made for every operation, and only errors tell them.
using Operands = absl::InlinedVector<const v1::Operand*, 4>;
Operands OperandsOf(const v1::Operation& operation);
using Outputs = absl::InlinedVector<const v1::Output*, 2>;
Outputs OutputsOf(const v1::Operation& operation);

}  // namespace stride::ops
