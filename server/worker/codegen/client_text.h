#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"

// A client's device function within emitted code. Its text is not checked: the code runs only in a
// worker of the client's tenant, like the client's kernels.
namespace stride::codegen {

// The function's text in its own namespace, guarded against repetition; its #includes come before.
// INTERNAL when the entry is not a name.
absl::StatusOr<std::string> ClientText(const wire::DeviceFunction& function);
// The function's name outside of this namespace.
std::string ClientName(const wire::DeviceFunction& function);

// Whether a client's text is part of the code, so that errors in it are the client's.
bool HasClientText(const wire::Code& code);
// All client text of the code, for checks.
std::string ClientTexts(const wire::Code& code);

}  // namespace stride::codegen
