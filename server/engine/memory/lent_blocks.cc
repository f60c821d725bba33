#include "server/engine/memory/lent_blocks.h"

#include <utility>

#include "server/engine/memory/staged_copy.h"
#include "server/engine/persistence/journal_writer.h"

namespace stride::engine {
namespace {

// Whether no other block lies, or lay, in the block's arena.
bool IsAlone(const store::Allocation& block, uint64_t granularity) {
  const store::Arena& arena = *block.arena;
  if (arena.alone) return true;
  return block.offset == 0 && arena.num_blocks == 1 &&
         arena.size == store::ArenaPool::LeastArenaFor(block.size, granularity);
}

}  // namespace

absl::StatusOr<store::Allocation> LentBlocks::PutAlone(const std::shared_ptr<store::Buffer>& buffer,
                                                       int device, SteadyTime deadline) {
  const auto size = static_cast<uint64_t>(buffer->size);
  DeviceQueue* queue = nullptr;
  uint64_t arena_size = 0;
  {
    GlobalTransaction transaction(*core_);
    queue = &queues_->Get(transaction, buffer->tenant, device);
    const auto granularity = static_cast<uint64_t>(queue->description.arena_granularity_bytes());
    arena_size = store::ArenaPool::LeastArenaFor(size, granularity);
    auto found = buffer->replicas.find(device);
    if (found != buffer->replicas.end() && IsAlone(found->second, granularity)) {
      if (!std::exchange(found->second.arena->alone, true))
        core_->journal_writer->Added(transaction, *found->second.arena, *queue);
      return found->second;
    }
    auto take = [&](uint64_t turn) {
      return memory_->eviction().AllocateScratch(transaction, *queue, arena_size, turn);
    };
    absl::Status status = memory_->Await(transaction, *queue, arena_size, deadline, take);
    if (!status.ok()) return status;
  }
  auto give_back = [&](absl::Status why) {
    GlobalTransaction transaction(*core_);
    memory_->arenas().GiveBackScratch(transaction, *queue, arena_size);
    memory_->Changed(transaction);
    return why;
  };
  auto arena = MakeArena(*queue, arena_size, deadline);
  if (!arena.ok()) return give_back(arena.status());
  (*arena)->heap.Reserve(0, size);
  const store::Allocation target{*arena, 0, size};
  absl::Status filled = CopyWithSuccessors([&] { return Fill(*queue, buffer, target); });
  GlobalTransaction transaction(*core_);
  memory_->arenas().Adopt(transaction, *queue, *arena);
  if (filled.ok()) filled = buffer->error;
  if (!filled.ok()) {
    core_->reclaimer->Add({buffer->tenant, device, target});
    memory_->Changed(transaction);
    return filled;
  }
  buffer->DropReplica(device);
  buffer->AddReplica(device, target);
  return target;
}

absl::StatusOr<std::shared_ptr<store::Arena>> LentBlocks::MakeArena(DeviceQueue& queue,
                                                                    uint64_t size,
                                                                    SteadyTime deadline) {
  std::shared_ptr<store::Arena> arena;
  if (queue.description.host_memory()) {
    auto made = memory_->arenas().MakeHostArena(size);
    if (!made.ok()) return made.status();
    arena = *std::move(made);
  } else {
    auto worker = workers_->BlockingWorker(queue, nullptr, deadline);
    if (!worker.ok()) return worker.status();
    const uint64_t id = memory_->arenas().NewArenaId();
    auto fd = (*worker)->CreateArena(id, size);
    if (!fd.ok()) return fd.status();
    arena = std::make_shared<store::Arena>(id, size, *std::move(fd), MemoryMap());
    TenantTransaction transaction(*core_, queue.tenant);
    if (queue.worker == *worker) queue.contents.mapped.emplace(id, false);
  }
  arena->alone = true;
  absl::Status stored = core_->journal_writer->StoreArena(*arena);
  if (stored.ok()) return arena;
  TenantTransaction transaction(*core_, queue.tenant);
  UnmapArena(queue, *arena);
  return stored;
}

absl::Status LentBlocks::Fill(DeviceQueue& queue, const std::shared_ptr<store::Buffer>& buffer,
                              const store::Allocation& target) {
  store::Allocation here;
  {
    TenantTransaction transaction(*core_, buffer->tenant);
    auto found = buffer->replicas.find(queue.device);
    if (found != buffer->replicas.end()) here = found->second;
  }
  const auto size = static_cast<uint64_t>(buffer->size);
  if (here.arena == nullptr) return memory_->migration().Bring(buffer, queue, target);
  if (here.mapped()) return memory_->copier().Copy(queue, here, queue, target, size);
  return memory_->copier().CopyWithin(queue, here, target, size, SteadyTime::InfiniteFuture());
}

}  // namespace stride::engine
