#include "server/api/call_gate.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);

absl::Status TooMany(int limit, std::string_view whose) {
  return TryLater(
      absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
      absl::StrCat("too many calls in progress; the limit", std::string(whose), " is ", limit),
      kRetryDelay, {{"limit", std::to_string(limit)}});
}

}  // namespace

absl::Status CallGate::Enter(const TenantId& tenant) {
  absl::MutexLock lock(&mutex_);
  if (num_calls_ >= max_) return TooMany(max_, " for all tenants together");
  auto it = calls_.try_emplace(tenant, 0).first;
  // A count of zero was just added, and no limit is zero.
  if (it->second >= max_per_tenant_) return TooMany(max_per_tenant_, "");
  ++it->second;
  ++num_calls_;
  return absl::OkStatus();
}

void CallGate::Leave(const TenantId& tenant) {
  absl::MutexLock lock(&mutex_);
  --num_calls_;
  auto it = calls_.find(tenant);
  if (--it->second == 0) calls_.erase(it);
}

}  // namespace stride::api
