// Scheduler: memory that a client maps, in an arena that holds nothing else.
#include <utility>

#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "server/base/surroundings.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/staged_copy.h"

namespace stride::scheduler {
namespace {

// Whether no other block lies, or lay, in the block's arena.
bool IsAlone(const store::Allocation& block, uint64_t granularity) {
  const store::Arena& arena = *block.arena;
  if (arena.alone) return true;
  return block.offset == 0 && arena.num_blocks == 1 &&
         arena.size == store::ArenaPool::LeastArenaFor(block.size, granularity);
}

}  // namespace

absl::StatusOr<store::Allocation> Scheduler::PutAlone(const std::shared_ptr<store::Buffer>& buffer,
                                                      int device, SteadyTime deadline) {
  const auto size = static_cast<uint64_t>(buffer->size);
  Lane* lane = nullptr;
  uint64_t arena_size = 0;
  {
    GlobalTransaction transaction(*core_);
    lane = &LaneFor(transaction, buffer->tenant, device);
    const auto granularity = static_cast<uint64_t>(lane->description.arena_granularity_bytes());
    arena_size = store::ArenaPool::LeastArenaFor(size, granularity);
    auto found = buffer->replicas.find(device);
    if (found != buffer->replicas.end() && IsAlone(found->second, granularity)) {
      if (!std::exchange(found->second.arena->alone, true))
        core_->recorder->Added(transaction, *found->second.arena, *lane);
      return found->second;
    }
    absl::Status status = AwaitMemory(transaction, *lane, arena_size, deadline, [&](uint64_t turn) {
      return AllocateScratch(transaction, *lane, arena_size, turn);
    });
    if (!status.ok()) return status;
  }
  auto give_back = [&](absl::Status why) {
    GlobalTransaction transaction(*core_);
    memory_.GiveBackScratch(transaction, *lane, arena_size);
    MemoryChanged(transaction);
    return why;
  };
  auto arena = MakeArenaAlone(*lane, arena_size, deadline);
  if (!arena.ok()) return give_back(arena.status());
  (*arena)->heap.Reserve(0, size);
  const store::Allocation target{*arena, 0, size};
  absl::Status filled = CopyWithSuccessors([&] { return FillAlone(*lane, buffer, target); });
  GlobalTransaction transaction(*core_);
  memory_.Adopt(transaction, *lane, *arena);
  if (filled.ok()) filled = buffer->error;
  if (!filled.ok()) {
    core_->reclaimer->Add({buffer->tenant, device, target});
    MemoryChanged(transaction);
    return filled;
  }
  buffer->DropReplica(device);
  buffer->AddReplica(device, target);
  return target;
}

absl::StatusOr<std::shared_ptr<store::Arena>> Scheduler::MakeArenaAlone(Lane& lane, uint64_t size,
                                                                        SteadyTime deadline) {
  std::shared_ptr<store::Arena> arena;
  if (lane.description.host_memory()) {
    auto made = memory_.MakeHostArena(size);
    if (!made.ok()) return made.status();
    arena = *std::move(made);
  } else {
    auto worker = BlockingWorker(lane, nullptr, deadline);
    if (!worker.ok()) return worker.status();
    const uint64_t id = memory_.NewArenaId();
    auto fd = (*worker)->CreateArena(id, size);
    if (!fd.ok()) return fd.status();
    arena = std::make_shared<store::Arena>(id, size, *std::move(fd), MemoryMap());
    TenantTransaction transaction(*core_, lane.tenant);
    if (lane.worker == *worker) lane.mapped.emplace(id, false);
  }
  arena->alone = true;
  absl::Status stored = core_->recorder->StoreArena(*arena);
  if (stored.ok()) return arena;
  TenantTransaction transaction(*core_, lane.tenant);
  if (lane.mapped.erase(arena->id) > 0 && lane.worker != nullptr)
    lane.worker->UnmapArena(arena->id).IgnoreError();
  return stored;
}

absl::Status Scheduler::FillAlone(Lane& lane, const std::shared_ptr<store::Buffer>& buffer,
                                  const store::Allocation& target) {
  store::Allocation here;
  {
    TenantTransaction transaction(*core_, buffer->tenant);
    auto found = buffer->replicas.find(lane.device);
    if (found != buffer->replicas.end()) here = found->second;
  }
  const auto size = static_cast<uint64_t>(buffer->size);
  if (here.arena == nullptr) return RunMove(lane, target, buffer);
  if (here.mapped()) return CopyBlock(&lane, here, {}, lane, target, size);
  return CopyWithin(lane, here, target, size, SteadyTime::InfiniteFuture());
}

// Copies on the device itself; no byte passes through the host.
absl::Status Scheduler::CopyWithin(Lane& lane, const store::Allocation& source,
                                   const store::Allocation& target, uint64_t size,
                                   SteadyTime deadline) {
  WorkerInUse in_use(core_, &lane);
  auto worker = BlockingWorker(lane, source.arena, deadline);
  if (!worker.ok()) return worker.status();
  auto same = BlockingWorker(lane, target.arena, deadline);
  if (!same.ok()) return same.status();
  if (*same != *worker) {
    return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_WORKER_LOST,
                    "the device process was lost; try again", absl::Milliseconds(200));
  }
  absl::Notification ended;
  absl::Status result;
  (*worker)->CopyFromPeer(target.arena->id, target.offset, source.arena->id, source.offset, size,
                          [&](absl::Status status) {
                            result = std::move(status);
                            ended.Notify();
                          });
  stride::Await(ended, SteadyTime::InfiniteFuture());
  return result;
}

}  // namespace stride::scheduler
