#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace stride::engine {

// Queued and finished work of a device, for all tenants together. Any thread may access it without
// a lock.
struct alignas(64) DeviceAccount {
  std::atomic<int> queue_depth{0};
  std::atomic<int64_t> queue_nanoseconds{0};  // integers: additions and subtractions cancel exactly
  std::atomic<double> busy_seconds{0};
  std::atomic<int64_t> succeeded{0};
  std::atomic<int64_t> failed{0};
  std::atomic<int64_t> worker_restarts{0};
  std::atomic<int64_t> upload_bytes{0};
  std::atomic<int64_t> download_bytes{0};

  double queue_seconds() const { return 1e-9 * static_cast<double>(queue_nanoseconds.load()); }
};

inline int64_t Nanoseconds(double seconds) {
  return static_cast<int64_t>(1e9 * std::clamp(seconds, 0.0, 1e9));
}

// Changes that one transaction adds to a DeviceAccount at its end. A transaction may accept and end
// dozens of operations; adding each would fetch the account from another processor's cache.
struct DeviceChange {
  int device = 0;
  int queue_depth = 0;
  int64_t queue_nanoseconds = 0;
  double busy_seconds = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;

  void AddTo(DeviceAccount& account) const {
    account.queue_depth.fetch_add(queue_depth, std::memory_order_relaxed);
    account.queue_nanoseconds.fetch_add(queue_nanoseconds, std::memory_order_relaxed);
    if (busy_seconds > 0) account.busy_seconds.fetch_add(busy_seconds, std::memory_order_relaxed);
    if (succeeded > 0) account.succeeded.fetch_add(succeeded, std::memory_order_relaxed);
    if (failed > 0) account.failed.fetch_add(failed, std::memory_order_relaxed);
  }
};

}  // namespace stride::engine
