#include "server/api/call_gate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);

}  // namespace

absl::Status CallGate::Enter(const TenantId& tenant) {
  absl::MutexLock lock(&mutex_);
  int& calls = calls_[tenant];
  if (calls < max_per_tenant_) {
    ++calls;
    return absl::OkStatus();
  }
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
                  absl::StrCat("too many calls in progress; the limit is ", max_per_tenant_),
                  kRetryDelay, {{"limit", std::to_string(max_per_tenant_)}});
}

void CallGate::Leave(const TenantId& tenant) {
  absl::MutexLock lock(&mutex_);
  auto it = calls_.find(tenant);
  if (--it->second == 0) calls_.erase(it);
}

}  // namespace stride::api
