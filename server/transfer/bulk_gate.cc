#include "server/transfer/bulk_gate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/error.h"

namespace stride::transfer {
namespace {

// About the time that a stream of 1 GiB takes.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

}  // namespace

absl::StatusOr<std::shared_ptr<const void>> BulkGate::Enter(const TenantId& tenant) {
  if (!Take(tenant)) {
    stats_.refused.fetch_add(1, std::memory_order_relaxed);
    return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
                    absl::StrCat("too many uploads and downloads at once; the limit is ",
                                 max_streams_, ", and ", max_per_tenant_, " for one tenant"),
                    kRetryDelay,
                    {{"limit", std::to_string(max_streams_)},
                     {"tenant_limit", std::to_string(max_per_tenant_)}});
  }
  stats_.admitted.fetch_add(1, std::memory_order_relaxed);
  return std::shared_ptr<const void>(&stats_, [this, tenant](const void*) { Leave(tenant); });
}

int BulkGate::num_streams() const {
  absl::MutexLock lock(&mutex_);
  return num_streams_;
}

bool BulkGate::Take(const TenantId& tenant) {
  absl::MutexLock lock(&mutex_);
  if (num_streams_ >= max_streams_) return false;
  auto it = tenants_.try_emplace(tenant, 0).first;
  if (it->second >= max_per_tenant_) return false;
  ++num_streams_;
  ++it->second;
  return true;
}

void BulkGate::Leave(const TenantId& tenant) {
  absl::MutexLock lock(&mutex_);
  --num_streams_;
  auto it = tenants_.find(tenant);
  if (--it->second == 0) tenants_.erase(it);
}

}  // namespace stride::transfer
