#include "server/api/byte_budget.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);

}  // namespace

absl::Status ByteBudget::Charge::Set(int64_t bytes) {
  if (budget_ == nullptr || bytes == bytes_) return absl::OkStatus();
  if (bytes > bytes_) {
    absl::Status status = budget_->Add(tenant_, bytes - bytes_);
    if (!status.ok()) return status;
  } else {
    budget_->Return(tenant_, bytes_ - bytes);
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status ByteBudget::Add(const TenantId& tenant, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto it = tenants_.try_emplace(tenant, 0).first;
  const int64_t left = max_bytes_ - used_ - bytes;
  if (it->second + bytes > left) {
    if (it->second == 0) tenants_.erase(it);
    return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
                    absl::StrCat("too many bytes of requests in progress; the limit for all "
                                 "tenants together is ",
                                 max_bytes_, ", of which one has at most half"),
                    kRetryDelay, {{"limit", absl::StrCat(max_bytes_)}});
  }
  it->second += bytes;
  used_ += bytes;
  return absl::OkStatus();
}

void ByteBudget::Return(const TenantId& tenant, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  used_ -= bytes;
  const auto it = tenants_.find(tenant);
  if ((it->second -= bytes) == 0) tenants_.erase(it);
}

int64_t ByteBudget::used() const {
  absl::MutexLock lock(&mutex_);
  return used_;
}

}  // namespace stride::api
