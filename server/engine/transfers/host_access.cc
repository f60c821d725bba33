#include "server/engine/transfers/host_access.h"

#include <atomic>
#include <utility>

#include "server/base/block_pool.h"
#include "server/base/environment.h"
#include "server/base/error.h"

namespace stride::engine {

std::shared_ptr<Task> HostTask(const TenantId& tenant, const char* label, Use use) {
  auto task = MakePooled<Task>();
  task->tenant = tenant;
  task->label = label;
  task->options.host_access = true;
  task->uses.push_back(std::move(use));
  return task;
}

HostAccess::HostAccess(Core* core, Scheduler* scheduler, std::shared_ptr<Task> task)
    : core_(core), scheduler_(scheduler), task_(std::move(task)) {
  // Two threads may report the grant and the end, in either order: each reports after its
  // transaction, and a caller may give up, which ends the access, before the grant is reported.
  // Fetch calls give up often: they wait in short slices to notice disconnected clients.
  auto notify = [granted = granted_, notified = std::make_shared<std::atomic_flag>()] {
    if (!notified->test_and_set()) granted->Notify();
  };
  task_->callbacks.granted = std::make_unique<const std::function<void()>>(notify);
  task_->callbacks.on_done.push_back([notify](const absl::Status&) { notify(); });
}

absl::Status HostAccess::Enqueue(TenantTransaction& transaction) {
  absl::Status status = scheduler_->Enqueue(transaction, task_);
  enqueued_ = status.ok();
  return status;
}

absl::Status HostAccess::Await(SteadyTime deadline, std::string_view late,
                               const session::Array* array) {
  if (!stride::Await(*granted_, deadline))
    return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, late);
  TenantTransaction transaction(*core_, task_->tenant);
  if (task_->state == TaskState::kDone && !task_->result.ok()) return task_->result;
  return array != nullptr ? array->status() : absl::OkStatus();
}

void HostAccess::End(TenantTransaction& transaction) {
  if (!std::exchange(enqueued_, false)) return;
  if (task_->state == TaskState::kDispatched) {
    scheduler_->Complete(transaction, task_, absl::OkStatus());
  } else {
    scheduler_->cancellation().Cancel(transaction, task_);
  }
}

HostAccess::~HostAccess() {
  if (!enqueued_) return;
  TenantTransaction transaction(*core_, task_->tenant);
  End(transaction);
}

absl::StatusOr<std::shared_ptr<ReadAccess>> ReadAccess::Enqueue(
    TenantTransaction& transaction, Core* core, Scheduler* scheduler, Operations* operations,
    const TenantId& tenant, session::ArrayPtr array, bool of_body) {
  if (!array->status().ok()) return array->status();
  if (!array->info->IsContiguous()) {
    auto contiguous = operations->MakeContiguous(transaction, tenant, array);
    if (!contiguous.ok()) return contiguous.status();
    array = *contiguous;
  }
  auto task = HostTask(tenant, "read", {.buffer = array->buffer, .read = true, .held = of_body});
  task->options.piece = task->options.of_body = of_body;
  auto access = std::make_shared<ReadAccess>(core, scheduler, std::move(task), std::move(array));
  absl::Status status = access->access_.Enqueue(transaction);
  if (!status.ok()) return status;
  return access;
}

}  // namespace stride::engine
