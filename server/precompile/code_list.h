#pragma once

#include <string>
#include <vector>

#include "server/wire/plan.pb.h"

namespace stride::precompile {

// Returns the code that the build compiles into the product, without duplicates. Operations are
// planned like a client's over element types and usual layouts, so that equal operations have equal
// code. `kind` is `cpu` or `cuda`. A pure function.
std::vector<wire::Code> CodesFor(const std::string& kind);

}  // namespace stride::precompile
