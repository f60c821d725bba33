#pragma once

#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {

// The passes of a sort, a selection of the first elements, a selection by rank, or a partition. The
// sizes are those of the algorithms in routines/.
RoutineShape PlanOrder(const wire::RoutineLaunch& launch, const RoutineTarget& target);

}  // namespace stride::codegen
