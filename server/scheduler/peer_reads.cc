// Scheduler: inputs that a launch reads in the memory of another device.
#include <algorithm>

#include "server/scheduler/scheduler.h"

namespace stride::scheduler {
namespace {

// An estimate: up to this size a move's round to the worker takes longer than reading it from afar.
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

// Host memory is mapped as a worker maps its own. A peer's mapping may fail, of which a launch
// could not tell: a copy has to have come from it, which goes another way when it fails.
bool Scheduler::ReadsInPlace(const Lane& lane, int place, const store::Allocation& block) const {
  if (lane.description.host_memory())
    return core_->IsDevice(place) && core_->Place(place).host_memory();
  auto mapped = lane.mapped.find(block.arena->id);
  return mapped != lane.mapped.end() && mapped->second && IsPeer(place, lane.device);
}

// A task that is ready may have been made so for a worker that has died since: its successor has
// mapped nothing.
bool Scheduler::HasBlocks(const Task& task, const Lane& lane) const {
  return std::all_of(task.uses.begin(), task.uses.end(), [&](const Use& use) {
    return use.buffer == nullptr || BlockFor(task, use, lane) != nullptr;
  });
}

}  // namespace stride::scheduler
