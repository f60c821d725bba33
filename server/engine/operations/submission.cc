// The part of Operations that clients call: OperationService.

#include <memory>
#include <utility>

#include "server/base/block_pool.h"
#include "server/engine/operations/operations.h"
#include "server/engine/operations/task_handle.h"
#include "server/engine/operations/tenant_batch.h"

namespace stride::engine {

bool Operations::MayBatch(const v1::Operation& operation) const {
  return !operation.has_program_call() && !NeedsGlobal(ops::OutputsOf(operation), {});
}

absl::StatusOr<std::shared_ptr<OperationHandle>> TenantBatch::Submit(
    const std::string& session, const ops::OperationView& operation, SteadyTime deadline) {
  auto accepted = parts_.operations->Accept(transaction_, tenant_, session, operation, deadline);
  parts_.scheduler->Settle(transaction_);
  if (!accepted.ok()) return accepted.status();
  return MakePooled<TaskHandle>(parts_.core, parts_.scheduler, parts_.reader, tenant_,
                                *std::move(accepted));
}

std::unique_ptr<SubmitBatch> Operations::BeginSubmitBatch(const TenantId& tenant) {
  return std::make_unique<TenantBatch>(TenantBatch::Parts{core_, scheduler_, this, reader_},
                                       tenant);
}

absl::StatusOr<std::shared_ptr<OperationHandle>> Operations::Submit(
    const TenantId& tenant, const std::string& session, const ops::OperationView& operation,
    SteadyTime deadline) {
  auto accepted = Accept(tenant, session, operation, deadline);
  if (!accepted.ok()) return accepted.status();
  return MakePooled<TaskHandle>(core_, scheduler_, reader_, tenant, *std::move(accepted));
}

void Operations::Refuse(const TenantId& tenant, const std::string& session,
                        const ops::OperationView& operation, const absl::Status& status) {
  TenantTransaction transaction(*core_, tenant);
  Refuse(transaction, tenant, session, operation, status);
}

absl::Status Operations::Release(const TenantId& tenant, const std::string& session,
                                 const v1::Release& release) {
  TenantTransaction transaction(*core_, tenant);
  return Release(transaction, tenant, session, release);
}

absl::Status Operations::Release(TenantTransaction& transaction, const TenantId& tenant,
                                 const std::string& session, const v1::Release& release) {
  auto found =
      core_->catalogue.FindSessionNamed(transaction, tenant, session, "session", core_->Now());
  if (!found.ok()) return found.status();
  for (uint64_t handle : release.handles())
    core_->catalogue.ReleaseHandle(transaction, **found, handle);
  return absl::OkStatus();
}

}  // namespace stride::engine
