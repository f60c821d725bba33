#include "server/tenant/transaction.h"

#include "server/base/crash_point.h"
#include "server/base/surroundings.h"
#include "server/scheduler/core.h"
#include "server/scheduler/recorder.h"

namespace stride::scheduler {
namespace {

bool IsUsed(const Core& core, int partition) {
  return (core.used_stripes.load(std::memory_order_acquire) & StripeBit(partition)) != 0;
}

#ifndef NDEBUG
thread_local bool has_transaction = false;
#endif

// A second transaction on one thread could wait for a lock out of order.
void NoteBegin() {
#ifndef NDEBUG
  assert(!std::exchange(has_transaction, true));
#endif
}

void NoteEnd() {
#ifndef NDEBUG
  has_transaction = false;
#endif
}

}  // namespace

TenantTransaction::TenantTransaction(Core& core, int partition) ABSL_NO_THREAD_SAFETY_ANALYSIS
    : core_(core),
      partition_(partition),
      taken_(StripeBit(partition)) {
  NoteBegin();
  if (!IsUsed(core, partition)) {
    // A global transaction has the partitions that were in use when it began.
    core.mutex.Lock();
    core.used_stripes.fetch_or(StripeBit(partition), std::memory_order_release);
    core.mutex.Unlock();
  }
  core.stripes[partition].mutex.Lock();
}

TenantTransaction::TenantTransaction(Core& core, int partition, std::adopt_lock_t)
    : core_(core), partition_(partition), taken_(StripeBit(partition)) {
  NoteBegin();
}

std::optional<TenantTransaction> TenantTransaction::IfFree(Core& core, const TenantId& tenant)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const int partition = StripeOf(tenant);
  // A partition that is not in use yet, as after a restart, would have to be added, which may wait.
  if (!IsUsed(core, partition) || !core.stripes[partition].mutex.TryLock()) return std::nullopt;
  return std::optional<TenantTransaction>(std::in_place, core, partition, std::adopt_lock);
}

TenantTransaction::~TenantTransaction() {
  End();
  RunDeferred();
}

uint64_t TenantTransaction::buffer_partitions() const {
  return is_global() ? core_.reclaimer->used_stripes() : taken_;
}

// All partitions that are in use, and so all that can be.
void TenantTransaction::TakeAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  NoteBegin();
  taken_ = core_.used_stripes.load(std::memory_order_relaxed);
  ForEachBit(taken_, [&](int partition)
                         ABSL_NO_THREAD_SAFETY_ANALYSIS { core_.stripes[partition].mutex.Lock(); });
  core_.reclaimer->LevelUses();
}

void TenantTransaction::End() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (!work_.empty()) core_.settle(*this);
  core_.recorder->Commit(*this);
  // Or a global transaction would not wait for this one.
  assert((taken_ & ~core_.used_stripes.load(std::memory_order_relaxed)) == 0);
  for (const DeviceChange& change : device_changes_)
    change.AddTo(core_.device_accounts[change.device]);
  device_changes_.clear();
  if (is_global()) {
    core_.reclaimer->LevelUses();
  } else {
    core_.reclaimer->EndUses(partition_);
  }
  ForEachBit(std::exchange(taken_, 0), [&](int partition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    core_.stripes[partition].mutex.Unlock();
  });
  if (is_global()) core_.mutex.Unlock();
  NoteEnd();
}

void TenantTransaction::RunDeferred() {
  Deferred deferred = std::exchange(deferred_, {});
  for (const auto& worker : std::exchange(outgoing_, {})) {
    worker->Flush();
    STRIDE_CRASH_POINT("scheduler.after_submit");
  }
  for (auto& function : deferred) function();
}

GlobalTransaction::GlobalTransaction(Core& core) ABSL_NO_THREAD_SAFETY_ANALYSIS
    : TenantTransaction(core) {
  core.mutex.Lock();
  TakeAll();
}

bool GlobalTransaction::Await(const absl::Condition& condition,
                              SteadyTime deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (condition.Eval()) return true;
  End();
  RunDeferred();
  core_.mutex.Lock();
  const bool holds = stride::Await(core_.mutex.base(), condition, deadline);
  TakeAll();
  return holds;
}

}  // namespace stride::scheduler
