#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/operations/resolved_operation.h"
#include "server/ops/operation_view.h"

namespace stride::engine {

// Adds the new outputs of a launched operation to the catalogue, by handle or name: all or none.
absl::Status PublishOutputs(Core& core, TenantTransaction& transaction, const TenantId& tenant,
                            const ResolvedOperation& resolved);

// The operation was refused with `status`. New handles of its outputs then name arrays with this
// error. An existing output keeps its content, and reports the lost write to the session.
void PublishError(Core& core, TenantTransaction& transaction, const TenantId& tenant,
                  const std::string& session, const ops::OperationView& operation,
                  const absl::Status& status);

}  // namespace stride::engine
