#include "server/scheduler/memory.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/base/system_error.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/staged_copy.h"
#include "server/store/spill_file.h"

namespace stride::scheduler {
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

Memory::Memory(Core* core, Lanes* lanes, Hooks hooks)
    : core_(core), lanes_(lanes), hooks_(std::move(hooks)) {}

Memory::Outcome Memory::Allocate(GlobalTransaction& transaction, Lane& lane, uint64_t size,
                                 uint64_t turn, store::Allocation* allocation) {
  if (AllocateAtHand(transaction, lane, size, allocation)) return Outcome::kAllocated;
  Outcome outcome = Grow(transaction, lane, size, turn);
  if (outcome != Outcome::kAllocated) return outcome;
  auto block = lane.pool.TryAllocate(size);
  if (!block) return Outcome::kFull;
  *allocation = *block;
  return Outcome::kAllocated;
}

bool Memory::AllocateAtHand(TenantTransaction& transaction, Lane& lane, uint64_t size,
                            store::Allocation* allocation) {
  Reclaim(transaction);
  auto block = lane.pool.TryAllocate(size);
  if (!block) return false;
  *allocation = *std::move(block);
  return true;
}

void Memory::Reclaim(TenantTransaction& transaction) {
  transaction.ForEachPartition([&](int partition) {
    std::vector<store::Reclaimer::Entry>& reclaimed = reclaimed_.At(transaction, partition);
    core_->reclaimer->TakeAll(partition, &reclaimed);
    if (reclaimed.empty()) return;
    core_->recorder->Commit(transaction);  // a successor must not find two owners of a block
    for (const auto& entry : reclaimed) {
      Lane* lane = lanes_->Find(transaction, entry.tenant, entry.device);
      if (lane != nullptr) Free(transaction, *lane, entry.allocation);
    }
    reclaimed.clear();
  });
}

void Memory::Free(TenantTransaction& transaction, Lane& lane, const store::Allocation& allocation) {
  const bool in_place = allocation.mapped() && !lane.description.host_memory();
  (in_place ? lane.zero_copy : lane.pool).Free(allocation);
}

bool Memory::AllocateZeroCopy(TenantTransaction& transaction, Lane& lane, uint64_t size,
                              store::Allocation* allocation) {
  if (lane.description.host_memory() || !core_->IsDevice(lane.device)) return false;
  Reclaim(transaction);
  std::optional<store::Allocation> block = lane.zero_copy.TryAllocate(size);
  if (!block && lane.zero_copy.arena_bytes() < kMaxZeroCopyBytes) {
    auto arena = MakeHostArena(kZeroCopyArenaBytes);
    if (!arena.ok()) return false;
    lane.zero_copy.Add(*std::move(arena));
    block = lane.zero_copy.TryAllocate(size);
  }
  if (!block) return false;
  *allocation = *block;
  return true;
}

void Memory::Trim(GlobalTransaction& transaction, Lane& lane, uint64_t keep_bytes) {
  // A worker that is dying answers UNAVAILABLE; its mappings go with it.
  auto unmap = [](Lane& user, const store::Arena& arena) {
    if (user.mapped.erase(arena.id) > 0 && user.worker != nullptr)
      user.worker->UnmapArena(arena.id).IgnoreError();
  };
  if (keep_bytes == 0) {
    for (const auto& arena : lane.zero_copy.TakeEmpty(0)) unmap(lane, *arena);
  }
  for (const auto& arena : lane.pool.TakeEmpty(keep_bytes)) {
    reserved_[lane.device] -= arena->size;
    core_->recorder->Removed(transaction, *arena, lane);
    // Drop the pages, since a client that keeps its mapping must not hold uncounted memory. A
    // thread does it, since it takes long.
    if (arena->lent && arena->map.data() != nullptr)
      core_->starter.Run([arena = arena] { DropPages(arena->fd.get(), arena->size); });
    // Other devices' workers of the tenant may have it mapped too, for copies.
    for (int place = 0; place < core_->num_places(); ++place) {
      if (Lane* user = lanes_->Find(transaction, lane.tenant, place)) unmap(*user, *arena);
    }
  }
}

void Memory::Adopt(GlobalTransaction& transaction, Lane& lane,
                   const std::shared_ptr<store::Arena>& arena) {
  GiveBackScratch(transaction, lane, arena->size);
  reserved_[lane.device] += arena->size;
  core_->recorder->Added(transaction, *arena, lane);
  lane.pool.Add(arena);
}

void Memory::Restore(GlobalTransaction& transaction, Lane& lane,
                     std::shared_ptr<store::Arena> arena) {
  reserved_[lane.device] += arena->size;
  next_arena_ = std::max(next_arena_.load(), arena->id + 1);
  lane.pool.Add(std::move(arena));
}

uint64_t Memory::arena_bytes(TenantTransaction& transaction, int device) const {
  auto it = reserved_.find(device);
  return it == reserved_.end() ? 0 : it->second;
}

uint64_t Memory::used_bytes(GlobalTransaction& transaction, int device) const {
  uint64_t used = 0;
  lanes_->ForEach(transaction, [&](const Lane& lane) {
    if (lane.device == device) used += lane.pool.used_bytes();
  });
  return used;
}

uint64_t Memory::limit_bytes(int device) const {
  if (!core_->IsDevice(device)) return static_cast<uint64_t>(core_->Place(device).memory_bytes());
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

bool Memory::TakeScratch(GlobalTransaction& transaction, Lane& lane, uint64_t bytes,
                         uint64_t turn) {
  Reclaim(transaction);
  if (!MakeRoom(transaction, lane, bytes, turn)) return false;
  scratch_[lane.device] += bytes;
  return true;
}

void Memory::GiveBackScratch(TenantTransaction& transaction, const Lane& lane, uint64_t bytes) {
  scratch_.at(lane.device) -= bytes;
}

uint64_t Memory::uncounted_scratch_bytes(int device) const {
  return std::min(kMostUncountedScratch, limit_bytes(device) / kUncountedOfPlace);
}

void Memory::TrimAll(GlobalTransaction& transaction, const Lane& lane, uint64_t turn) {
  lanes_->ForEach(transaction, [&](Lane& other) {
    if (other.device != lane.device) return;
    if (&other == &lane || !other.WaitsBefore(turn)) Trim(transaction, other, 0);
  });
}

bool Memory::MakeRoom(GlobalTransaction& transaction, const Lane& lane, uint64_t size,
                      uint64_t turn) {
  if (size > limit_bytes(lane.device)) return false;
  if (room(transaction, lane.device) >= static_cast<int64_t>(size)) return true;
  TrimAll(transaction, lane, turn);
  return room(transaction, lane.device) >= static_cast<int64_t>(size);
}

Memory::Outcome Memory::Grow(GlobalTransaction& transaction, Lane& lane, uint64_t size,
                             uint64_t turn) {
  if (lane.growing || lane.AwaitsDeath()) return Outcome::kLater;
  if (std::exchange(lane.grow_failed, false)) return Outcome::kFull;
  lane.grow_lack = absl::OkStatus();
  auto granularity = static_cast<uint64_t>(lane.description.arena_granularity_bytes());
  uint64_t least = store::ArenaPool::LeastArenaFor(size, granularity);
  uint64_t shared_size = store::ArenaPool::LeastArenaFor(
      std::max(limit_bytes(lane.device) / kSharedArenasOfPlace, kSmallestSharedArena), granularity);
  if (size < store::ArenaPool::kDedicatedBytes) {
    const uint64_t grown =
        std::max(kFirstSharedArena, kSharedArenaGrowth * lane.pool.arena_bytes());
    shared_size = std::min(shared_size, store::ArenaPool::LeastArenaFor(grown, granularity));
  }
  uint64_t arena_size =
      std::max(least, std::min(shared_size, store::ArenaPool::ArenaSizeFor(size, granularity)));
  while (!MakeRoom(transaction, lane, arena_size, turn)) {
    if (arena_size <= least) return Outcome::kFull;
    bool shared = arena_size / 2 >= std::max(kSmallestSharedArena, least);
    arena_size = shared ? store::ArenaPool::LeastArenaFor(arena_size / 2, granularity) : least;
  }
  if (lane.description.host_memory()) return AddHostArena(transaction, lane, arena_size);
  if (lane.device != core_->disk_place()) {
    RequestArena(transaction, lane, arena_size);
  } else if (core_->Now() < next_file_) {
    return Outcome::kFull;
  } else {
    RequestFile(transaction, lane, arena_size, least);
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
Memory::Outcome Memory::Lacking(GlobalTransaction& transaction, Lane& lane,
                                const absl::Status& why) {
  const bool of_machine = !MetadataOf(why, "resource").empty();
  if (!IsLack(why)) return Outcome::kFull;
  if (hooks_.give_way(transaction, lane,
                      of_machine ? std::nullopt : std::optional<int>(lane.device)))
    return Outcome::kLater;
  if (of_machine) lane.grow_lack = why;
  return Outcome::kFull;
}

Memory::Outcome Memory::AddHostArena(GlobalTransaction& transaction, Lane& lane, uint64_t size) {
  auto made = MakeHostArena(size);
  if (!made.ok()) return Lacking(transaction, lane, made.status());
  std::shared_ptr<store::Arena> arena = *std::move(made);
  if (absl::Status kept = core_->recorder->StoreArena(*arena); !kept.ok())
    return Lacking(transaction, lane, kept);
  core_->recorder->Added(transaction, *arena, lane);
  reserved_[lane.device] += size;
  lane.pool.Add(std::move(arena));
  return Outcome::kAllocated;
}

void Memory::RequestArena(GlobalTransaction& transaction, Lane& lane, uint64_t size) {
  lane.growing = true;
  reserved_[lane.device] += size;
  uint64_t id = next_arena_++;
  core_->starter.Run([this, lane = &lane, worker = lane.worker, id, size] {
    auto fd = worker->CreateArena(id, size);
    absl::Status status = fd.status();
    std::shared_ptr<store::Arena> arena;
    if (fd.ok()) {
      arena = std::make_shared<store::Arena>(id, size, std::move(*fd), MemoryMap());
      status = core_->recorder->StoreArena(*arena);
      if (!status.ok()) arena = nullptr;
    }
    GlobalTransaction transaction(*core_);
    lane->growing = false;
    if (arena != nullptr) {
      core_->recorder->Added(transaction, *arena, *lane);
      lane->pool.Add(std::move(arena));
      if (lane->worker == worker) lane->mapped.emplace(id, false);
    } else {
      reserved_[lane->device] -= size;
      // A worker's death does not show a lack of memory; its successor is asked.
      const bool died = worker != nullptr && MayGoOn(status);
      if (died) lane->dying = worker;
      lane->grow_failed = !died && Lacking(transaction, *lane, status) == Outcome::kFull;
    }
    hooks_.changed(transaction, *lane);
  });
}

void Memory::RequestFile(GlobalTransaction& transaction, Lane& lane, uint64_t size,
                         uint64_t least) {
  lane.growing = true;
  reserved_[lane.device] += size;
  uint64_t id = next_arena_++;
  core_->starter.Run([this, lane = &lane, id, size, least] {
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
      status = core_->recorder->StoreArena(*arena);
    }
    GlobalTransaction transaction(*core_);
    lane->growing = false;
    reserved_[lane->device] -= size;
    if (status.ok()) {
      reserved_[lane->device] += made;
      core_->recorder->Added(transaction, *arena, *lane);
      lane->pool.Add(std::move(arena));
      FileWorked(transaction);
    } else {
      // The pause holds for every request, since making room evicts one array after another.
      next_file_ = core_->Now() + kFullDiskPause;
      FileFailed(transaction, status);
    }
    hooks_.changed(transaction, *lane);
  });
}

void Memory::FileFailed(GlobalTransaction& transaction, const absl::Status& why) {
  if (file_error_told_ || core_->Now() < next_file_log_) return;
  file_error_told_ = true;
  next_file_log_ = core_->Now() + kFileLogInterval;
  core_->options.log(absl::StrCat(
      "idle arrays cannot leave for the disk, and stay where they are: ", why.message()));
}

}  // namespace stride::scheduler
