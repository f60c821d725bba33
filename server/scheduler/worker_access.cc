// Scheduler: a queue's worker for a thread that copies.
#include "server/scheduler/scheduler.h"
#include "server/scheduler/staged_copy.h"

namespace stride::scheduler {
namespace {

// Longest time from a failed send to a dead worker until the broker reports the death.
constexpr absl::Duration kDeathNotice = absl::Seconds(5);

}  // namespace

std::shared_ptr<broker::Worker> Scheduler::WorkerAtHand(
    Lane& lane, const std::shared_ptr<store::Arena>& arena) {
  lane.last_used = core_->Now();
  bool there = lane.worker != nullptr && lane.worker->alive();
  if (there && arena != nullptr) there = MapArena(lane, arena, /*peer=*/false).ok();
  return there ? lane.worker : nullptr;
}

absl::StatusOr<std::shared_ptr<broker::Worker>> Scheduler::BlockingWorker(
    Lane& lane, const std::shared_ptr<store::Arena>& arena, SteadyTime deadline) {
  {
    TenantTransaction transaction(*core_, lane.tenant);
    if (auto worker = WorkerAtHand(lane, arena)) return worker;
  }
  GlobalTransaction transaction(*core_);
  for (int i = 0; i < kMaxTransferTries; ++i) {
    if (absl::Status status = AwaitWorker(transaction, lane, deadline); !status.ok()) return status;
    const std::shared_ptr<broker::Worker> worker = lane.worker;
    if (WorkerAtHand(lane, arena) != nullptr) return worker;
    // The worker died; once that is observed its successor is asked.
    auto known = [&] { return lane.worker != worker || core_->ending; };
    transaction.Await(absl::Condition(&known), core_->Now() + kDeathNotice);
  }
  return LostWorker();
}

}  // namespace stride::scheduler
