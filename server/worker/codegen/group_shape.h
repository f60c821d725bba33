#pragma once

#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {

// The passes of a reduction by group, a histogram, or an update at indices. The sizes are those of
// the algorithms in routines/.
RoutineShape PlanGroups(const wire::RoutineLaunch& launch, const RoutineTarget& target);

}  // namespace stride::codegen
