// Scheduler: a queue's worker for a thread that copies.
#include "server/engine/memory/staged_copy.h"
#include "server/engine/scheduling/scheduler.h"

namespace stride::engine {
namespace {

// Longest time from a failed send to a dead worker until the broker reports the death.
constexpr absl::Duration kDeathNotice = absl::Seconds(5);

}  // namespace

std::shared_ptr<broker::Worker> Scheduler::WorkerAtHand(
    DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena) {
  queue.last_used = core_->Now();
  bool there = queue.worker != nullptr && queue.worker->alive();
  if (there && arena != nullptr) there = MapArena(queue, arena, /*peer=*/false).ok();
  return there ? queue.worker : nullptr;
}

absl::StatusOr<std::shared_ptr<broker::Worker>> Scheduler::BlockingWorker(
    DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena, SteadyTime deadline) {
  {
    TenantTransaction transaction(*core_, queue.tenant);
    if (auto worker = WorkerAtHand(queue, arena)) return worker;
  }
  GlobalTransaction transaction(*core_);
  for (int i = 0; i < kMaxTransferTries; ++i) {
    if (absl::Status status = AwaitWorker(transaction, queue, deadline); !status.ok())
      return status;
    const std::shared_ptr<broker::Worker> worker = queue.worker;
    if (WorkerAtHand(queue, arena) != nullptr) return worker;
    // The worker died; once that is observed its successor is asked.
    auto known = [&] { return queue.worker != worker || core_->ending; };
    transaction.Await(absl::Condition(&known), core_->Now() + kDeathNotice);
  }
  return LostWorker();
}

}  // namespace stride::engine
