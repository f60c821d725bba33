#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"

namespace stride::api {

// Counts of one method since the daemon started.
struct MethodCounters {
  int64_t started = 0;
  std::array<int64_t, 17> handled{};  // by gRPC status code
  double seconds = 0;                 // total time of handled calls
};

// Counts every RPC by method. Thread-safe.
class RpcCounters {
 public:
  void Started(const char* method);
  void Handled(const char* method, int code, absl::Duration elapsed);
  std::map<std::string, MethodCounters> Snapshot() const;
  // Calls without valid credentials.
  void AuthenticationFailed() { auth_failures_.fetch_add(1, std::memory_order_relaxed); }
  int64_t auth_failures() const { return auth_failures_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> auth_failures_{0};
  mutable std::mutex mutex_;
  std::map<std::string, MethodCounters> methods_;  // guarded by mutex_
};

}  // namespace stride::api
