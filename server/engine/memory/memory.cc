#include "server/engine/memory/memory.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/base/system_error.h"
#include "server/engine/memory/staged_copy.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/store/spill_file.h"

namespace stride::engine {
namespace {

// Bounds of an arena for small blocks: at most this part of a place, so that a tenant with one
// small array takes little from others, and at least this size.
constexpr uint64_t kSharedArenasOfPlace = 16;
constexpr uint64_t kSmallestSharedArena = uint64_t{64} << 10;
// Size of a queue's first arena for small blocks, and the largest ratio of the next arena to all
// before it. A thousand tenants with a small array each then take little memory, and a tenant with
// many arrays has few arenas.
constexpr uint64_t kFirstSharedArena = uint64_t{2} << 20;
constexpr uint64_t kSharedArenaGrowth = 3;
// As much as a CUDA worker keeps (cuda::Scratch::kKeptBytes), and at most this part of a place.
constexpr uint64_t kMostUncountedScratch = uint64_t{64} << 20;
constexpr uint64_t kUncountedOfPlace = 16;
// Most host memory that a queue's device uses in place, and its increment: the results and inputs
// of a few dozen small calls at once.
constexpr uint64_t kMaxZeroCopyBytes = uint64_t{16} << 20;
constexpr uint64_t kZeroCopyArenaBytes = uint64_t{2} << 20;
// Equals the retry delay of OutOfMemory, the error that callers get then.
constexpr absl::Duration kFullDiskPause = absl::Seconds(1);
constexpr absl::Duration kFileLogInterval = absl::Seconds(10);

void DropPages(int fd, uint64_t size) {
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size));
}

}  // namespace

Memory::Memory(Core* core, DeviceQueues* queues, Hooks hooks)
    : core_(core), queues_(queues), hooks_(std::move(hooks)) {}

Memory::Outcome Memory::Allocate(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                                 uint64_t turn, store::Allocation* allocation) {
  if (AllocateAtHand(transaction, queue, size, allocation)) return Outcome::kAllocated;
  Outcome outcome = Grow(transaction, queue, size, turn);
  if (outcome != Outcome::kAllocated) return outcome;
  auto block = queue.arenas.pool.TryAllocate(size);
  if (!block) return Outcome::kFull;
  *allocation = *block;
  return Outcome::kAllocated;
}

bool Memory::AllocateAtHand(TenantTransaction& transaction, DeviceQueue& queue, uint64_t size,
                            store::Allocation* allocation) {
  Reclaim(transaction);
  auto block = queue.arenas.pool.TryAllocate(size);
  if (!block) return false;
  *allocation = *std::move(block);
  return true;
}

void Memory::Reclaim(TenantTransaction& transaction) {
  transaction.ForEachPartition([&](int partition) {
    std::vector<store::Reclaimer::Entry>& reclaimed = reclaimed_.At(transaction, partition);
    core_->reclaimer->TakeAll(partition, &reclaimed);
    if (reclaimed.empty()) return;
    core_->journal_writer->Commit(transaction);  // a successor must not find two owners of a block
    for (const auto& entry : reclaimed) {
      DeviceQueue* queue = queues_->Find(transaction, entry.tenant, entry.device);
      if (queue != nullptr) Free(transaction, *queue, entry.allocation);
    }
    reclaimed.clear();
  });
}

void Memory::Free(TenantTransaction& transaction, DeviceQueue& queue,
                  const store::Allocation& allocation) {
  const bool in_place = allocation.mapped() && !queue.description.host_memory();
  (in_place ? queue.arenas.zero_copy : queue.arenas.pool).Free(allocation);
}

bool Memory::AllocateZeroCopy(TenantTransaction& transaction, DeviceQueue& queue, uint64_t size,
                              store::Allocation* allocation) {
  if (queue.description.host_memory() || !core_->IsDevice(queue.device)) return false;
  Reclaim(transaction);
  std::optional<store::Allocation> block = queue.arenas.zero_copy.TryAllocate(size);
  if (!block && queue.arenas.zero_copy.arena_bytes() < kMaxZeroCopyBytes) {
    auto arena = MakeHostArena(kZeroCopyArenaBytes);
    if (!arena.ok()) return false;
    queue.arenas.zero_copy.Add(*std::move(arena));
    block = queue.arenas.zero_copy.TryAllocate(size);
  }
  if (!block) return false;
  *allocation = *block;
  return true;
}

void Memory::Trim(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t keep_bytes) {
  if (keep_bytes == 0) {
    for (const auto& arena : queue.arenas.zero_copy.TakeEmpty(0)) UnmapArena(queue, *arena);
  }
  for (const auto& arena : queue.arenas.pool.TakeEmpty(keep_bytes)) {
    reserved_[queue.device] -= arena->size;
    core_->journal_writer->Removed(transaction, *arena, queue);
    // Drop the pages, since a client that keeps its mapping must not hold uncounted memory. A
    // thread does it, since it takes long.
    if (arena->lent && arena->map.data() != nullptr)
      core_->starter.Run([arena = arena] { DropPages(arena->fd.get(), arena->size); });
    // Other devices' workers of the tenant may have it mapped too, for copies.
    for (int place = 0; place < core_->num_places(); ++place) {
      if (DeviceQueue* user = queues_->Find(transaction, queue.tenant, place))
        UnmapArena(*user, *arena);
    }
  }
}

void Memory::Adopt(GlobalTransaction& transaction, DeviceQueue& queue,
                   const std::shared_ptr<store::Arena>& arena) {
  GiveBackScratch(transaction, queue, arena->size);
  reserved_[queue.device] += arena->size;
  core_->journal_writer->Added(transaction, *arena, queue);
  queue.arenas.pool.Add(arena);
}

void Memory::Restore(GlobalTransaction& transaction, DeviceQueue& queue,
                     std::shared_ptr<store::Arena> arena) {
  reserved_[queue.device] += arena->size;
  next_arena_ = std::max(next_arena_.load(), arena->id + 1);
  queue.arenas.pool.Add(std::move(arena));
}

uint64_t Memory::arena_bytes(TenantTransaction& transaction, int device) const {
  auto it = reserved_.find(device);
  return it == reserved_.end() ? 0 : it->second;
}

uint64_t Memory::used_bytes(GlobalTransaction& transaction, int device) const {
  uint64_t used = 0;
  queues_->ForEach(transaction, [&](const DeviceQueue& queue) {
    if (queue.device == device) used += queue.arenas.pool.used_bytes();
  });
  return used;
}

uint64_t Memory::limit_bytes(int device) const {
  if (!core_->IsDevice(device))
    return static_cast<uint64_t>(core_->MemorySpace(device).memory_bytes());
  double total = static_cast<double>(core_->broker->devices()[device].memory_bytes());
  auto share = static_cast<uint64_t>(total * core_->options.device_memory_share);
  auto most = static_cast<uint64_t>(core_->options.max_device_memory_bytes);
  return most > 0 ? std::min(share, most) : share;
}

int64_t Memory::room(TenantTransaction& transaction, int device) const {
  auto scratch = scratch_.find(device);
  return static_cast<int64_t>(limit_bytes(device)) -
         static_cast<int64_t>(arena_bytes(transaction, device)) -
         static_cast<int64_t>(scratch == scratch_.end() ? 0 : scratch->second.load());
}

bool Memory::TakeScratch(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t bytes,
                         uint64_t turn) {
  Reclaim(transaction);
  if (!MakeRoom(transaction, queue, bytes, turn)) return false;
  scratch_[queue.device] += bytes;
  return true;
}

void Memory::GiveBackScratch(TenantTransaction& transaction, const DeviceQueue& queue,
                             uint64_t bytes) {
  scratch_.at(queue.device) -= bytes;
}

uint64_t Memory::uncounted_scratch_bytes(int device) const {
  return std::min(kMostUncountedScratch, limit_bytes(device) / kUncountedOfPlace);
}

void Memory::TrimAll(GlobalTransaction& transaction, const DeviceQueue& queue, uint64_t turn) {
  queues_->ForEach(transaction, [&](DeviceQueue& other) {
    if (other.device != queue.device) return;
    if (&other == &queue || !other.WaitsBefore(turn)) Trim(transaction, other, 0);
  });
}

bool Memory::MakeRoom(GlobalTransaction& transaction, const DeviceQueue& queue, uint64_t size,
                      uint64_t turn) {
  if (size > limit_bytes(queue.device)) return false;
  if (room(transaction, queue.device) >= static_cast<int64_t>(size)) return true;
  TrimAll(transaction, queue, turn);
  return room(transaction, queue.device) >= static_cast<int64_t>(size);
}

Memory::Outcome Memory::Grow(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                             uint64_t turn) {
  if (queue.arenas.growing || queue.AwaitsDeath()) return Outcome::kLater;
  if (std::exchange(queue.arenas.grow_failed, false)) return Outcome::kFull;
  queue.arenas.grow_lack = absl::OkStatus();
  auto granularity = static_cast<uint64_t>(queue.description.arena_granularity_bytes());
  uint64_t least = store::ArenaPool::LeastArenaFor(size, granularity);
  uint64_t shared_size = store::ArenaPool::LeastArenaFor(
      std::max(limit_bytes(queue.device) / kSharedArenasOfPlace, kSmallestSharedArena),
      granularity);
  if (size < store::ArenaPool::kDedicatedBytes) {
    const uint64_t grown =
        std::max(kFirstSharedArena, kSharedArenaGrowth * queue.arenas.pool.arena_bytes());
    shared_size = std::min(shared_size, store::ArenaPool::LeastArenaFor(grown, granularity));
  }
  uint64_t arena_size =
      std::max(least, std::min(shared_size, store::ArenaPool::ArenaSizeFor(size, granularity)));
  while (!MakeRoom(transaction, queue, arena_size, turn)) {
    if (arena_size <= least) return Outcome::kFull;
    bool shared = arena_size / 2 >= std::max(kSmallestSharedArena, least);
    arena_size = shared ? store::ArenaPool::LeastArenaFor(arena_size / 2, granularity) : least;
  }
  if (queue.description.host_memory()) return AddHostArena(transaction, queue, arena_size);
  if (queue.device != core_->disk_place()) {
    RequestArena(transaction, queue, arena_size);
  } else if (core_->Now() < next_file_) {
    return Outcome::kFull;
  } else {
    RequestFile(transaction, queue, arena_size, least);
  }
  return Outcome::kLater;
}

absl::StatusOr<std::shared_ptr<store::Arena>> Memory::MakeHostArena(uint64_t size) {
  auto fd = CreateMemoryFile("stride-arena", size);
  if (!fd.ok()) return fd.status();
  auto map = MemoryMap::Map(fd->get(), size, /*writable=*/true);
  if (!map.ok()) return map.status();
  return std::make_shared<store::Arena>(next_arena_++, size, std::move(*fd), std::move(*map));
}

// Eviction would not help: descriptors are lacking, or device memory that workers hold.
Memory::Outcome Memory::Lacking(GlobalTransaction& transaction, DeviceQueue& queue,
                                const absl::Status& why) {
  const bool of_machine = !MetadataOf(why, "resource").empty();
  if (!IsLack(why)) return Outcome::kFull;
  if (hooks_.give_way(transaction, queue,
                      of_machine ? std::nullopt : std::optional<int>(queue.device)))
    return Outcome::kLater;
  if (of_machine) queue.arenas.grow_lack = why;
  return Outcome::kFull;
}

Memory::Outcome Memory::AddHostArena(GlobalTransaction& transaction, DeviceQueue& queue,
                                     uint64_t size) {
  auto made = MakeHostArena(size);
  if (!made.ok()) return Lacking(transaction, queue, made.status());
  std::shared_ptr<store::Arena> arena = *std::move(made);
  if (absl::Status kept = core_->journal_writer->StoreArena(*arena); !kept.ok())
    return Lacking(transaction, queue, kept);
  core_->journal_writer->Added(transaction, *arena, queue);
  reserved_[queue.device] += size;
  queue.arenas.pool.Add(std::move(arena));
  return Outcome::kAllocated;
}

void Memory::RequestArena(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size) {
  queue.arenas.growing = true;
  reserved_[queue.device] += size;
  uint64_t id = next_arena_++;
  core_->starter.Run([this, queue = &queue, worker = queue.worker, id, size] {
    auto fd = worker->CreateArena(id, size);
    absl::Status status = fd.status();
    std::shared_ptr<store::Arena> arena;
    if (fd.ok()) {
      arena = std::make_shared<store::Arena>(id, size, std::move(*fd), MemoryMap());
      status = core_->journal_writer->StoreArena(*arena);
      if (!status.ok()) arena = nullptr;
    }
    GlobalTransaction transaction(*core_);
    queue->arenas.growing = false;
    if (arena != nullptr) {
      core_->journal_writer->Added(transaction, *arena, *queue);
      queue->arenas.pool.Add(std::move(arena));
      if (queue->worker == worker) queue->contents.mapped.emplace(id, false);
    } else {
      reserved_[queue->device] -= size;
      // A worker's death does not show a lack of memory; its successor is asked.
      const bool died = worker != nullptr && MayGoOn(status);
      if (died) queue->dying = worker;
      queue->arenas.grow_failed = !died && Lacking(transaction, *queue, status) == Outcome::kFull;
    }
    hooks_.changed(transaction, *queue);
  });
}

void Memory::RequestFile(GlobalTransaction& transaction, DeviceQueue& queue, uint64_t size,
                         uint64_t least) {
  queue.arenas.growing = true;
  reserved_[queue.device] += size;
  uint64_t id = next_arena_++;
  core_->starter.Run([this, queue = &queue, id, size, least] {
    uint64_t made = size;
    auto fd = store::CreateSpillFile(core_->options.spill_folder, size);
    if (!fd.ok() && least < size) {
      made = least;
      fd = store::CreateSpillFile(core_->options.spill_folder, least);
    }
    absl::Status status = fd.status();
    std::shared_ptr<store::Arena> arena;
    if (status.ok()) {
      arena = std::make_shared<store::Arena>(id, made, std::move(*fd), MemoryMap());
      status = core_->journal_writer->StoreArena(*arena);
    }
    GlobalTransaction transaction(*core_);
    queue->arenas.growing = false;
    reserved_[queue->device] -= size;
    if (status.ok()) {
      reserved_[queue->device] += made;
      core_->journal_writer->Added(transaction, *arena, *queue);
      queue->arenas.pool.Add(std::move(arena));
      FileWorked(transaction);
    } else {
      // The pause holds for every request, since making room evicts one array after another.
      next_file_ = core_->Now() + kFullDiskPause;
      FileFailed(transaction, status);
    }
    hooks_.changed(transaction, *queue);
  });
}

void Memory::FileFailed(GlobalTransaction& transaction, const absl::Status& why) {
  if (file_error_told_ || core_->Now() < next_file_log_) return;
  file_error_told_ = true;
  next_file_log_ = core_->Now() + kFileLogInterval;
  core_->options.log(absl::StrCat(
      "idle arrays cannot leave for the disk, and stay where they are: ", why.message()));
}

}  // namespace stride::engine
