#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/ids.h"

namespace stride::api {

// The memory of all requests in execution: received bytes and protobuf's objects. A tenant may have
// at most as much as remains for all others. So one tenant has at most half, and N greedy tenants
// leave the next a part in N + 1. Thread-safe.
class ByteBudget {
 public:
  static constexpr int64_t kBytes = int64_t{128} << 20;

  explicit ByteBudget(int64_t max_bytes = kBytes) : max_bytes_(max_bytes) {}

  // One call's share of the budget; returned when the call ends. One thread at a time.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)),
          tenant_(std::move(other.tenant_)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(tenant_, other.tenant_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    // With a null budget there is no limit.
    Charge(ByteBudget* budget, TenantId tenant) : budget_(budget), tenant_(std::move(tenant)) {}
    ~Charge() { Set(0).IgnoreError(); }

    // Sets the charge to `bytes`. If it grows beyond the budget: RESOURCE_EXHAUSTED with a retry
    // delay, and the charge is unchanged.
    absl::Status Set(int64_t bytes);
    int64_t bytes() const { return bytes_; }

   private:
    ByteBudget* budget_ = nullptr;
    TenantId tenant_;
    int64_t bytes_ = 0;
  };

  int64_t used() const;

 private:
  absl::Status Add(const TenantId& tenant, int64_t bytes);
  void Return(const TenantId& tenant, int64_t bytes);

  const int64_t max_bytes_;
  mutable absl::Mutex mutex_;
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<TenantId, int64_t> tenants_ ABSL_GUARDED_BY(mutex_);  // none is zero
};

}  // namespace stride::api
