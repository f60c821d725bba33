#include "server/engine/operations/operation_outputs.h"

#include <memory>

#include "server/base/block_pool.h"
#include "server/session/resource_name.h"

namespace stride::engine {

using session::Array;
using ArrayPtr = std::shared_ptr<Array>;

namespace {

// The session counts on a write to the array that was refused.
void LoseWrite(const Array& array, const std::string& session, const absl::Status& status) {
  if (array.buffer != nullptr) array.buffer->LoseWrite(session, status);
  if (array.shards == nullptr) return;
  for (const ArrayPtr& part : array.shards->parts) LoseWrite(*part, session, status);
}

void Unpublish(Core& core, TenantTransaction& transaction, const TenantId& tenant,
               const ResolvedOperation& resolved, size_t output) {
  const auto& target = resolved.targets[output];
  if (target.is_inline || target.existing != nullptr) return;
  if (target.handle != 0) {
    core.catalogue.ReleaseHandle(transaction, *resolved.session, target.handle);
  } else {
    core.catalogue.RemoveArray(transaction, tenant, target.name, resolved.now).IgnoreError();
  }
}

}  // namespace

absl::Status PublishOutputs(Core& core, TenantTransaction& transaction, const TenantId& tenant,
                            const ResolvedOperation& resolved) {
  for (size_t j = 0; j < resolved.targets.size(); ++j) {
    const auto& target = resolved.targets[j];
    if (target.is_inline || target.existing != nullptr) continue;
    const ArrayPtr& array = resolved.outputs[j];
    absl::Status status =
        target.handle != 0
            ? core.catalogue.AddArray(transaction, *resolved.session, target.handle, array)
            : core.catalogue.AddArray(transaction, tenant, target.name, array, resolved.now);
    if (status.ok()) continue;
    // All or none: nothing will make what the others stand for.
    for (size_t k = 0; k < j; ++k) Unpublish(core, transaction, tenant, resolved, k);
    return status;
  }
  return absl::OkStatus();
}

void PublishError(Core& core, TenantTransaction& transaction, const TenantId& tenant,
                  const std::string& session, const ops::OperationView& operation,
                  const absl::Status& status) {
  auto id = session::ParseSessionName(session, "session");
  if (!id.ok()) return;
  for (const v1::Output* output : operation.outputs()) {
    if (output->target_case() != v1::Output::kHandle || output->handle() == 0) continue;
    if (output->existing()) {
      auto found = core.catalogue.FindArray(
          transaction, tenant, {.session = *id, .handle = output->handle()}, core.Now());
      if (found.ok()) LoseWrite(**found, session, status);
      continue;
    }
    auto array = MakePooled<Array>();
    array->error = status;
    array->create_time = core.Now();
    // Taken handles keep what they stand for.
    core.catalogue
        .AddArray(transaction, tenant, {.session = *id, .handle = output->handle()}, array,
                  core.Now())
        .IgnoreError();
  }
}

}  // namespace stride::engine
