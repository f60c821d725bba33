// The part of Operations that clients call: OperationService.

#include <memory>
#include <utility>

#include "server/base/block_pool.h"
#include "server/base/surroundings.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/task_handle.h"

namespace stride::scheduler {
namespace {

class OneSection final : public OperationService::SubmitBatch {
 public:
  OneSection(Core* core, Scheduler* scheduler, const TenantId& tenant)
      : lock_(*core, tenant), scheduler_(*scheduler) {
    lock_.BeginTogether();
  }
  ~OneSection() override { scheduler_.SendHeld(); }

 private:
  Locked lock_;
  OneMoment moment_;
  Scheduler& scheduler_;
};

}  // namespace

std::unique_ptr<OperationService::SubmitBatch> Operations::BeginSubmitBatch(
    const TenantId& tenant) {
  return std::make_unique<OneSection>(core_, scheduler_, tenant);
}

absl::StatusOr<std::shared_ptr<OperationHandle>> Operations::Submit(const TenantId& tenant,
                                                                    const std::string& session,
                                                                    const v1::Operation& operation,
                                                                    SteadyTime deadline) {
  auto accepted = Accept(tenant, session, operation, deadline);
  if (!accepted.ok()) return accepted.status();
  return MakePooled<TaskHandle>(core_, scheduler_, reader_, tenant, *std::move(accepted));
}

absl::Status Operations::Release(const TenantId& tenant, const std::string& session,
                                 const v1::Release& release) {
  Locked lock(*core_, tenant);
  auto found = core_->catalogue.FindSessionNamed(tenant, session, "session", core_->Now());
  if (!found.ok()) return found.status();
  for (uint64_t handle : release.handles()) core_->catalogue.ReleaseHandle(**found, handle);
  return absl::OkStatus();
}

}  // namespace stride::scheduler
