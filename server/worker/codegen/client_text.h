#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/wire/plan.pb.h"

// A client's device function within emitted code. What it does there is the client's own affair:
// the code runs in a worker of that client's tenant alone, as its kernels do.
namespace stride::codegen {

// The function's text in a namespace of its own, once however often it is written; its includes
// come before. INTERNAL when the name is none.
absl::StatusOr<std::string> ClientText(const wire::DeviceFunction& function);
// The function's name from outside.
std::string ClientName(const wire::DeviceFunction& function);

// Whether a client's text is part of the code, so that errors in it are the client's.
bool HasClientText(const wire::Code& code);
// All of it, for checks.
std::string ClientTexts(const wire::Code& code);

}  // namespace stride::codegen
