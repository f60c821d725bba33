#pragma once

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/ids.h"

namespace stride::api {

// Bounds the calls that one tenant has in progress. Each holds a thread, silent streams included,
// and threads are one pool for all: no tenant may take them all. Thread-safe.
class CallGate {
 public:
  explicit CallGate(int max_per_tenant) : max_per_tenant_(max_per_tenant) {}

  // RESOURCE_EXHAUSTED with a retry delay when the tenant has all it may have; else Leave is owed.
  absl::Status Enter(const TenantId& tenant);
  void Leave(const TenantId& tenant);

 private:
  const int max_per_tenant_;
  absl::Mutex mutex_;
  std::map<TenantId, int> calls_ ABSL_GUARDED_BY(mutex_);  // none is zero
};

}  // namespace stride::api
