#pragma once

#include <string>
#include <vector>

#include "server/wire/plan.pb.h"

namespace stride::precompile {

// The code that is compiled when the product is built. Operations are planned like a client's, over
// element types and the usual layouts, so that equal operations have equal code. `kind`: `cpu` or
// `cuda`. Without duplicates. A pure function.
std::vector<wire::Code> CodesFor(const std::string& kind);

}  // namespace stride::precompile
