#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "server/ops/client_function.h"
#include "server/ops/program_plan.h"

namespace stride::ops {

// Elementwise steps whose result one other such step of the same shape reads, and nothing else, go
// into that step's loop; those that only a reduction reads go into the reduction, which computes
// its elements then. Results stay equal to the bit. `known`: what each handle stands for; `results`
// are read by others. Steps keep their order; those that are too large together stay apart.
void FuseSteps(const std::map<uint64_t, ArrayInfo>& known, const std::set<uint64_t>& results,
               const FunctionTable* functions, std::vector<ProgramStep>* steps);

}  // namespace stride::ops
