#include "server/session/control_account.h"

#include "absl/time/time.h"
#include "server/base/error.h"

namespace stride::session {

ControlCharge::~ControlCharge() { Set(0); }

void ControlCharge::Set(int64_t bytes) {
  if (account_ == nullptr || bytes == bytes_) return;
  std::atomic<int64_t>& sum = droppable_ ? account_->droppable_ : account_->firm_;
  sum.fetch_add(bytes - bytes_, std::memory_order_relaxed);
  bytes_ = bytes;
}

absl::Status ControlCharge::Grow(int64_t bytes) {
  if (account_ == nullptr) return absl::OkStatus();
  if (absl::Status status = account_->Enter(bytes); !status.ok()) return status;
  bytes_ += bytes;
  return absl::OkStatus();
}

void ControlCharge::MakeDroppable() {
  if (account_ == nullptr || droppable_) return;
  account_->droppable_.fetch_add(bytes_, std::memory_order_relaxed);
  account_->firm_.fetch_sub(bytes_, std::memory_order_relaxed);
  droppable_ = true;
}

absl::StatusOr<ControlCharge> ControlAccount::Take(int64_t bytes) {
  if (absl::Status status = Enter(bytes); !status.ok()) return status;
  return ControlCharge(shared_from_this(), bytes);
}

absl::Status ControlAccount::Enter(int64_t bytes) {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  const int64_t before = firm_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > limit - before && bytes > 0) {
    firm_.fetch_sub(bytes, std::memory_order_relaxed);
    return QuotaExceeded(
        v1::ERROR_REASON_QUOTA, tenant_.value,
        "the tenant's things would take too much of the daemon's memory: delete jobs, modules, "
        "functions, programs, sessions, arrays or handles that are of no use any more",
        {.quota = "control-bytes", .limit = limit, .used = before, .asked = bytes},
        absl::Seconds(1));
  }
  const int64_t droppable = droppable_.load(std::memory_order_relaxed);
  if (droppable > 0 && droppable > limit - before - bytes && !asked_.exchange(true))
    room_->Ask(tenant_);
  return absl::OkStatus();
}

int64_t ControlAccount::Excess(int64_t more) const {
  return used() - limit_.load(std::memory_order_relaxed) + more;
}

}  // namespace stride::session
