#include "server/engine/service/region.h"

namespace stride::engine {

Region::Region(uint64_t id, std::string name, TenantId tenant, std::string session,
               std::unique_ptr<store::SharedSegment> memory, std::shared_ptr<const void> place)
    : id_(id),
      name_(std::move(name)),
      tenant_(std::move(tenant)),
      session_(std::move(session)),
      place_(std::move(place)),
      memory_(std::move(memory)) {}

Region::~Region() {
  for (auto& [id, weak] : workers_) {
    // A worker that has ended has no mapping any more.
    if (auto worker = weak.lock()) worker->UnmapRegion(id_).IgnoreError();
  }
}

absl::Status Region::MapIn(const std::shared_ptr<broker::Worker>& worker) {
  absl::MutexLock lock(&mutex_);
  if (workers_.count(worker->id()) > 0) return absl::OkStatus();
  for (auto it = workers_.begin(); it != workers_.end();) {
    it = it->second.expired() ? workers_.erase(it) : std::next(it);
  }
  absl::Status status = worker->MapRegion(id_, static_cast<uint64_t>(size()), fd());
  if (status.ok()) workers_[worker->id()] = worker;
  return status;
}

}  // namespace stride::engine
