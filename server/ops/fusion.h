#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "server/ops/client_function.h"
#include "server/ops/program_plan.h"

namespace stride::ops {

// Fuses an elementwise step into the only step that reads its result: another elementwise step of
// the same shape, or a reduction, which then computes its elements. Results stay equal bit for bit.
// `known` describes the array of each handle; `results` have other readers. Steps keep their order;
// steps whose fusion would be too large stay separate.
void FuseSteps(const std::map<uint64_t, ArrayInfo>& known, const std::set<uint64_t>& results,
               const FunctionTable* functions, std::vector<ProgramStep>* steps);

}  // namespace stride::ops
