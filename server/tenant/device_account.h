#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace stride::scheduler {

// What a device has to do and has done, of all tenants together. Any thread, without a lock.
struct alignas(64) DeviceAccount {
  std::atomic<int> queue_depth{0};
  std::atomic<int64_t> queue_nanoseconds{0};  // whole ones, so that what comes and goes leaves 0
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

// What one transaction adds to it at its end: operations come and go by the dozen in one, and each
// of them would otherwise fetch the account from another processor's cache.
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

}  // namespace stride::scheduler
