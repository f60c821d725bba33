#include "server/engine/memory/memory_manager.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/memory/out_of_memory.h"
#include "server/engine/memory/staged_copy.h"

namespace stride::engine {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);

}  // namespace

MemoryManager::MemoryManager(Core* core, DeviceQueues* queues, WorkerSource* workers,
                             TaskEvents* events, decltype(Memory::Hooks::give_way) give_way)
    : core_(core),
      queues_(queues),
      workers_(workers),
      arenas_(core, queues,
              {.changed = [this](GlobalTransaction& transaction,
                                 DeviceQueue&) { Changed(transaction); },
               .give_way = std::move(give_way)}),
      waiters_(core, queues, events),
      peers_(core),
      copier_(core, workers),
      eviction_(core, queues, &arenas_, &copies_, &copier_, &waiters_, events),
      migration_(core, queues, &copies_, &copier_, &peers_, &waiters_, events) {}

void MemoryManager::Unpin(TenantTransaction& transaction, store::Buffer& buffer) {
  --buffer.pin_count;
  Changed(transaction);
}

absl::StatusOr<store::Allocation> MemoryManager::BlockingAllocate(DeviceQueue& queue, uint64_t size,
                                                                  SteadyTime deadline) {
  store::Allocation allocation;
  {
    // As a rule the queue's own arenas have room, and no other tenant is concerned.
    TenantTransaction transaction(*core_, queue.tenant);
    if (queue.memory_queue.empty() &&
        arenas_.AllocateAtHand(transaction, queue, size, &allocation)) {
      queue.last_used = core_->Now();
      return allocation;
    }
  }
  GlobalTransaction transaction(*core_);
  absl::Status status = Await(transaction, queue, size, deadline, [&](uint64_t turn) {
    return eviction_.Allocate(transaction, queue, size, turn, &allocation);
  });
  if (!status.ok()) return status;
  return allocation;
}

absl::Status MemoryManager::Await(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                                  SteadyTime deadline,
                                  absl::FunctionRef<Memory::Outcome(uint64_t turn)> take) {
  const bool needs_worker = !queue.description.host_memory() && core_->IsDevice(queue.device);
  int num_workers = 0;
  std::shared_ptr<broker::Worker> asked;
  const uint64_t turn = waiters_.NextTurn(transaction);
  SteadyTime give_up = core_->Now() + core_->options.memory_patience;
  while (true) {
    // A worker that dies while it makes an arena has a successor.
    if (needs_worker && (queue.worker == nullptr || queue.worker != asked)) {
      if (++num_workers > kMaxTransferTries) return LostWorker();
      absl::Status status = workers_->AwaitWorker(transaction, queue, deadline);
      if (!status.ok()) return status;
      asked = queue.worker;
      // The patience is for memory that others hold, not for a worker's start.
      give_up = core_->Now() + core_->options.memory_patience;
    }
    const uint64_t seen = waiters_.num_changes(transaction);
    const Memory::Outcome outcome = take(turn);
    if (outcome == Memory::Outcome::kAllocated) return absl::OkStatus();
    // Memory of running tasks is freed when they end, which is worth a short wait.
    const bool wait = !core_->ending && (outcome == Memory::Outcome::kLater ||
                                         MayComeFree(transaction, queue.device));
    if (!wait || core_->Now() >= give_up) {
      if (!queue.arenas.grow_lack.ok()) return queue.arenas.grow_lack;
      return OutOfMemory(queue.description.id(), size, arenas_.limit_bytes(queue.device));
    }
    waiters_.AwaitChange(transaction, seen, give_up);
  }
}

bool MemoryManager::MayComeFree(GlobalTransaction& transaction, int device) const {
  bool may = !copies_.empty(transaction);
  queues_->ForEach(transaction, [&](const DeviceQueue& queue) {
    if (queue.device != device && core_->IsDevice(queue.device)) return;
    may = may || queue.arenas.growing || queue.num_holding > 0 || !queue.sending.in_flight.empty();
  });
  return may;
}

int MemoryManager::HomeOf(int64_t bytes, int device) const {
  for (int place : {device, core_->memory_place(), core_->disk_place()}) {
    if (bytes <= static_cast<int64_t>(arenas_.limit_bytes(place))) return place;
  }
  return device;
}

void MemoryManager::Housekeep(GlobalTransaction& transaction) {
  arenas_.Reclaim(transaction);
  waiters_.Retry(transaction);  // arrays may have been deleted
  Log(transaction);
}

SpillSample MemoryManager::Sample(GlobalTransaction& transaction) const {
  const int memory = core_->memory_place(), disk = core_->disk_place();
  SpillSample sample = eviction_.totals(transaction);
  sample.returned_bytes = migration_.returned_bytes(transaction);
  sample.memory_bytes = static_cast<int64_t>(arenas_.used_bytes(transaction, memory));
  sample.memory_arena_bytes = static_cast<int64_t>(arenas_.arena_bytes(transaction, memory));
  sample.disk_bytes = static_cast<int64_t>(arenas_.used_bytes(transaction, disk));
  sample.disk_arena_bytes = static_cast<int64_t>(arenas_.arena_bytes(transaction, disk));
  return sample;
}

// Logs the totals at intervals during evictions, so that an operator can see why work is slow.
void MemoryManager::Log(GlobalTransaction& transaction) {
  const int64_t spilled_bytes = eviction_.totals(transaction).spilled_bytes;
  if (spilled_bytes == logged_bytes_ || core_->Now() < next_log_) return;
  logged_bytes_ = spilled_bytes;
  next_log_ = core_->Now() + kLogInterval;
  SpillSample sample = Sample(transaction);
  core_->options.log(absl::StrCat("devices are full: idle arrays hold ", sample.memory_bytes,
                                  " bytes of host memory and ", sample.disk_bytes,
                                  " of disk; in all ", sample.spilled_bytes, " bytes have left, ",
                                  sample.returned_bytes, " came back"));
}

}  // namespace stride::engine
