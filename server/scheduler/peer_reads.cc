// Scheduler: inputs that a launch reads in the memory of another device.
#include <algorithm>

#include "server/scheduler/scheduler.h"

namespace stride::scheduler {
namespace {

// An estimate: up to this size, the round trip of a move through the worker takes longer than a
// read from the peer.
constexpr int64_t kMaxPeerReadBytes = 64 << 10;

}  // namespace

const store::Allocation* Scheduler::BlockFor(const Task& task, const Use& use,
                                             const Lane& lane) const {
  const store::Replicas& replicas = use.buffer->replicas;
  auto found = replicas.find(lane.device);
  if (found == replicas.end()) {
    // Workers look up peers' arenas for the inputs of elementwise launches alone.
    const bool may = task.reads_peers && task.plan().task.has_elementwise() && !use.write &&
                     use.buffer->size <= kMaxPeerReadBytes;
    if (!may) return nullptr;
    found = std::find_if(replicas.begin(), replicas.end(), [&](const auto& replica) {
      return ReadsInPlace(lane, replica.first, replica.second);
    });
  }
  return found == replicas.end() ? nullptr : &found->second;
}

// A worker maps host memory as it maps its own arenas. A peer's mapping may fail, and a launch
// cannot report that. So a device reads a peer's arena in place only after a copy from it has
// succeeded.
bool Scheduler::ReadsInPlace(const Lane& lane, int place, const store::Allocation& block) const {
  if (lane.description.host_memory())
    return core_->IsDevice(place) && core_->Place(place).host_memory();
  auto mapped = lane.mapped.find(block.arena->id);
  return mapped != lane.mapped.end() && mapped->second && IsPeer(place, lane.device);
}

// A task may have been prepared for a worker that has died since. The next worker has mapped no
// peer's arena yet.
bool Scheduler::HasBlocks(const Task& task, const Lane& lane) const {
  return std::all_of(task.uses.begin(), task.uses.end(), [&](const Use& use) {
    return use.buffer == nullptr || BlockFor(task, use, lane) != nullptr;
  });
}

}  // namespace stride::scheduler
