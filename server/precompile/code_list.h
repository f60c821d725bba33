#pragma once

#include <string>
#include <vector>

#include "server/wire/plan.pb.h"

namespace stride::precompile {

// The code that the product compiles when it is built. Operations are planned as
// a client's are, over element types and the usual layouts, so that equal operations have equal
// code. `kind`: `cpu` or `cuda`. No code is listed twice. A pure function.
std::vector<wire::Code> CodesFor(const std::string& kind);

}  // namespace stride::precompile
