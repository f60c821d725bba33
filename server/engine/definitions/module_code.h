#pragma once

#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {

// Returns the code of a module for this launch, as it was compiled, so that it is found ready. An
// entry that the module does not list is compiled again with it.
absl::StatusOr<wire::Code> CodeOfModule(wire::Source source, const v1::KernelLaunch& launch);

}  // namespace stride::engine
