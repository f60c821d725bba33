#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/ids.h"

namespace stride::transfer {

// Bounds the number of concurrent bulk streams, and with it the memory of gRPC's flow control
// windows (tens of megabytes each). One tenant may have half of them, so that its idle or unread
// streams cannot lock out other tenants. Thread-safe.
class BulkGate {
 public:
  struct Stats {
    std::atomic<int64_t> admitted{0};
    std::atomic<int64_t> refused{0};
  };

  explicit BulkGate(int max_streams)
      : max_streams_(max_streams), max_per_tenant_(std::max(1, max_streams / 2)) {}

  // Admits a stream until the lease is released; the gate must outlive it. RESOURCE_EXHAUSTED with
  // a retry delay when no place is free.
  absl::StatusOr<std::shared_ptr<const void>> Enter(const TenantId& tenant);

  int num_streams() const;
  const Stats& stats() const { return stats_; }

 private:
  bool Take(const TenantId& tenant);
  void Leave(const TenantId& tenant);

  const int max_streams_;
  const int max_per_tenant_;
  mutable absl::Mutex mutex_;
  int num_streams_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<TenantId, int> tenants_ ABSL_GUARDED_BY(mutex_);  // entries are positive
  Stats stats_;
};

}  // namespace stride::transfer
