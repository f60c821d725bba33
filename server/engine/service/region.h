#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/ids.h"
#include "server/broker/worker.h"
#include "server/store/shared_segment.h"

namespace stride::engine {

// A region in the daemon: its memory, and the workers that have mapped it. Its session and calls in
// progress share it, so that a copy never uses memory that is gone. The destructor blocks: it never
// runs under a lock, nor on a worker's reader thread. Thread-safe.
class Region {
 public:
  // `place` counts the region's bytes against quotas while it exists.
  Region(uint64_t id, std::string name, TenantId tenant, std::string session,
         std::unique_ptr<store::SharedSegment> memory, std::shared_ptr<const void> place);
  // Sends workers the command to unmap the region.
  ~Region();

  uint64_t id() const { return id_; }  // unique in the daemon's life
  const std::string& name() const { return name_; }
  const TenantId& tenant() const { return tenant_; }
  const std::string& session() const { return session_; }
  int64_t size() const { return memory_->size(); }
  int fd() const { return memory_->fd(); }
  std::byte* data() const { return memory_->data(); }

  // Whether [offset, offset + size) lies within it.
  bool Covers(int64_t offset, int64_t size) const {
    return offset >= 0 && size >= 0 && offset <= this->size() && size <= this->size() - offset;
  }

  // As store::SharedSegment::LeavePages.
  void LeavePages() { memory_->LeavePages(); }

  // Maps the region in the worker, once. Copies that are sent to the worker afterwards may name it.
  // May block as Worker::MapRegion does.
  absl::Status MapIn(const std::shared_ptr<broker::Worker>& worker);

 private:
  const uint64_t id_;
  const std::string name_;
  const TenantId tenant_;
  const std::string session_;
  const std::shared_ptr<const void> place_;  // released after the memory
  const std::unique_ptr<store::SharedSegment> memory_;
  absl::Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<broker::Worker>> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::engine
