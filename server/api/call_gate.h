#pragma once

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/ids.h"

namespace stride::api {

// Bounds the calls in flight, of one tenant and of all. Most hold a thread, silent streams
// included, and all hold memory, so no tenant may use all of it. Thread-safe.
class CallGate {
 public:
  CallGate(int max_per_tenant, int max) : max_per_tenant_(max_per_tenant), max_(max) {}

  // RESOURCE_EXHAUSTED with a retry delay when the tenant's limit, or the total one, is reached.
  // After OK the caller must call Leave.
  absl::Status Enter(const TenantId& tenant);
  void Leave(const TenantId& tenant);

 private:
  const int max_per_tenant_, max_;
  absl::Mutex mutex_;
  int num_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<TenantId, int> calls_ ABSL_GUARDED_BY(mutex_);  // none is zero
};

}  // namespace stride::api
