#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace stride::transfer {

// Bounds the bulk streams that run at once, and with them the memory that gRPC's flow control
// windows can take (tens of megabytes each). Thread-safe.
class BulkGate {
 public:
  struct Stats {
    std::atomic<int64_t> admitted{0};
    std::atomic<int64_t> refused{0};
  };

  explicit BulkGate(int max_streams) : max_streams_(max_streams) {}

  // A place, free again when the lease is dropped; the gate must outlive it. RESOURCE_EXHAUSTED
  // with a retry delay when none is free.
  absl::StatusOr<std::shared_ptr<const void>> Enter();

  int num_streams() const { return num_streams_.load(std::memory_order_relaxed); }
  const Stats& stats() const { return stats_; }

 private:
  const int max_streams_;
  std::atomic<int> num_streams_{0};
  Stats stats_;
};

}  // namespace stride::transfer
