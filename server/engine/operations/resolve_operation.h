#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/core/core.h"
#include "server/engine/operations/resolved_operation.h"
#include "server/ops/operation_view.h"

namespace stride::engine {

// Whether a priority is valid; the error names the field.
absl::Status CheckPriority(int priority, const std::string& field);

// The index of a device, by `devices/{id}`, or `devices/{kind}:{n}` for the nth of its kind.
absl::StatusOr<int> FindDevice(const Core& core, const std::string& name);

// Looks up the session, the device, the operands and the targets of an operation, and creates
// arrays of its inline operands. `resolved` has the time of acceptance and the caller's extras. An
// error names the field; `resolved` is then incomplete.
absl::Status ResolveOperation(Core& core, TenantTransaction& transaction, const TenantId& tenant,
                              const std::string& session, const ops::OperationView& operation,
                              ResolvedOperation* resolved);

}  // namespace stride::engine
