#include "server/scheduler/memory.h"

#include <algorithm>
#include <utility>

#include "server/base/memory_file.h"

namespace stride::scheduler {

Memory::Memory(Core* core, std::function<Lane*(const TenantId&, int)> find_lane,
               std::function<void(Lane&)> changed)
    : core_(core), find_lane_(std::move(find_lane)), changed_(std::move(changed)) {}

Memory::Outcome Memory::Allocate(Lane& lane, uint64_t size, store::Allocation* allocation) {
  if (std::find(lanes_.begin(), lanes_.end(), &lane) == lanes_.end()) lanes_.push_back(&lane);
  Reclaim();
  if (auto block = lane.pool.TryAllocate(size)) {
    *allocation = *block;
    return Outcome::kAllocated;
  }
  Outcome outcome = Grow(lane, size);
  if (outcome != Outcome::kAllocated) return outcome;
  auto block = lane.pool.TryAllocate(size);
  if (!block) return Outcome::kFull;
  *allocation = *block;
  return Outcome::kAllocated;
}

void Memory::Reclaim() {
  auto entries = core_->reclaimer->TakeAll();
  if (entries.empty()) return;
  core_->recorder.Commit();  // a successor must not find two owners of a block
  for (const auto& entry : entries) {
    Lane* lane = find_lane_(entry.tenant, entry.device);
    if (lane != nullptr) lane->pool.Free(entry.allocation);
  }
}

void Memory::Trim(Lane& lane, uint64_t keep_bytes) {
  for (const auto& arena : lane.pool.TakeEmpty(keep_bytes)) {
    reserved_[lane.device] -= arena->size;
    core_->recorder.Removed(*arena);
    if (lane.mapped.erase(arena->id) > 0 && lane.worker != nullptr) {
      // A worker that is dying answers UNAVAILABLE; its mappings go with it.
      lane.worker->UnmapArena(arena->id).IgnoreError();
    }
  }
}

void Memory::Restore(Lane& lane, std::shared_ptr<store::Arena> arena) {
  if (std::find(lanes_.begin(), lanes_.end(), &lane) == lanes_.end()) lanes_.push_back(&lane);
  reserved_[lane.device] += arena->size;
  next_arena_ = std::max(next_arena_, arena->id + 1);
  lane.pool.Add(std::move(arena));
}

uint64_t Memory::arena_bytes(int device) const {
  auto it = reserved_.find(device);
  return it == reserved_.end() ? 0 : it->second;
}

uint64_t Memory::used_bytes(int device) const {
  uint64_t used = 0;
  for (const Lane* lane : lanes_) {
    if (lane->device == device) used += lane->pool.used_bytes();
  }
  return used;
}

uint64_t Memory::limit_bytes(int device) const {
  double total = static_cast<double>(core_->broker->devices()[device].memory_bytes());
  return static_cast<uint64_t>(total * core_->options.device_memory_share);
}

bool Memory::MakeRoom(int device, uint64_t size) {
  uint64_t limit = limit_bytes(device);
  if (size > limit) return false;
  if (arena_bytes(device) + size <= limit) return true;
  for (Lane* lane : lanes_) {
    if (lane->device == device) Trim(*lane, 0);
  }
  return arena_bytes(device) + size <= limit;
}

Memory::Outcome Memory::Grow(Lane& lane, uint64_t size) {
  if (lane.growing || lane.AwaitsDeath()) return Outcome::kLater;
  if (std::exchange(lane.grow_failed, false)) return Outcome::kFull;
  uint64_t arena_size = store::ArenaPool::ArenaSizeFor(
      size, static_cast<uint64_t>(lane.description.arena_granularity_bytes()));
  if (!MakeRoom(lane.device, arena_size)) return Outcome::kFull;
  if (lane.description.host_memory()) return AddHostArena(lane, arena_size);
  RequestDeviceArena(lane, arena_size);
  return Outcome::kLater;
}

Memory::Outcome Memory::AddHostArena(Lane& lane, uint64_t size) {
  auto fd = CreateMemoryFile("stride-arena", size);
  if (!fd.ok()) return Outcome::kFull;
  auto map = MemoryMap::Map(fd->get(), size, /*writable=*/true);
  if (!map.ok()) return Outcome::kFull;
  auto arena = std::make_shared<store::Arena>(next_arena_++, size, std::move(*fd), std::move(*map));
  if (!core_->recorder.StoreArena(*arena).ok()) return Outcome::kFull;
  core_->recorder.Added(*arena, lane);
  reserved_[lane.device] += size;
  lane.pool.Add(std::move(arena));
  return Outcome::kAllocated;
}

void Memory::RequestDeviceArena(Lane& lane, uint64_t size) {
  lane.growing = true;
  reserved_[lane.device] += size;
  uint64_t id = next_arena_++;
  core_->starter.Run([this, lane = &lane, worker = lane.worker, id, size] {
    auto fd = worker->CreateArena(id, size);
    std::shared_ptr<store::Arena> arena;
    if (fd.ok()) {
      arena = std::make_shared<store::Arena>(id, size, std::move(*fd), MemoryMap());
      if (!core_->recorder.StoreArena(*arena).ok()) arena = nullptr;
    }
    Locked lock(*core_);
    lane->growing = false;
    if (arena != nullptr) {
      core_->recorder.Added(*arena, *lane);
      lane->pool.Add(std::move(arena));
      if (lane->worker == worker) lane->mapped.insert(id);
    } else {
      reserved_[lane->device] -= size;
      // One that died has not said that there is no memory; its successor is asked.
      bool died = absl::IsUnavailable(fd.status());
      lane->grow_failed = !died;
      if (died) lane->dying = worker;
    }
    changed_(*lane);
  });
}

}  // namespace stride::scheduler
