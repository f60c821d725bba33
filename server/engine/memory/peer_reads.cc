#include "server/engine/memory/peer_reads.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/engine/core/links.h"

namespace stride::engine {
namespace {

// An estimate: up to this size, the round trip of a move through the worker takes longer than a
// read from the peer.
constexpr int64_t kMaxPeerReadBytes = 64 << 10;

}  // namespace

bool PeerReads::IsPeer(int from, int to) const {
  if (core_->broker->links().empty() || !core_->IsDevice(from) || !core_->IsDevice(to))
    return false;
  const wire::Link* link =
      FindLink(core_->broker->links(), core_->MemorySpace(from).id(), core_->MemorySpace(to).id());
  return link != nullptr && link->peer() && broken_.count({from, to}) == 0;
}

void PeerReads::Break(GlobalTransaction&, int from, int to, const absl::Status& why) {
  if (!broken_.insert({from, to}).second) return;
  core_->options.log(absl::StrCat("copies from devices/", core_->MemorySpace(from).id(),
                                  " to devices/", core_->MemorySpace(to).id(),
                                  " go through the host from now on, since one between the "
                                  "devices failed: ",
                                  why.message()));
}

void PeerReads::NoteCopy(TenantTransaction&, DeviceQueue& queue,
                         const std::weak_ptr<broker::Worker>& worker, const store::Arena& arena) {
  if (queue.worker == nullptr || queue.worker != worker.lock()) return;
  auto mapped = queue.contents.mapped.find(arena.id);
  if (mapped != queue.contents.mapped.end()) mapped->second = true;
}

const store::Allocation* PeerReads::BlockFor(const Task& task, const Use& use,
                                             const DeviceQueue& queue) const {
  const store::Replicas& replicas = use.buffer->replicas;
  auto found = replicas.find(queue.device);
  if (found == replicas.end()) {
    // Workers look up peers' arenas for the inputs of elementwise launches alone.
    const bool may = task.options.reads_peers && task.plan().task.has_elementwise() && !use.write &&
                     use.buffer->size <= kMaxPeerReadBytes;
    if (!may) return nullptr;
    found = std::find_if(replicas.begin(), replicas.end(), [&](const auto& replica) {
      return ReadsInPlace(queue, replica.first, replica.second);
    });
  }
  return found == replicas.end() ? nullptr : &found->second;
}

// A worker maps host memory as it maps its own arenas. A peer's mapping may fail, and a launch
// cannot report that. So a device reads a peer's arena in place only after a copy from it has
// succeeded.
bool PeerReads::ReadsInPlace(const DeviceQueue& queue, int place,
                             const store::Allocation& block) const {
  if (queue.description.host_memory())
    return core_->IsDevice(place) && core_->MemorySpace(place).host_memory();
  auto mapped = queue.contents.mapped.find(block.arena->id);
  return mapped != queue.contents.mapped.end() && mapped->second && IsPeer(place, queue.device);
}

// A task may have been prepared for a worker that has died since. The next worker has mapped no
// peer's arena yet.
bool PeerReads::HasBlocks(const Task& task, const DeviceQueue& queue) const {
  return std::all_of(task.uses.begin(), task.uses.end(), [&](const Use& use) {
    return use.buffer == nullptr || BlockFor(task, use, queue) != nullptr;
  });
}

}  // namespace stride::engine
