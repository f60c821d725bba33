#include "server/tenant/transaction.h"

#include "server/base/crash_point.h"
#include "server/base/environment.h"
#include "server/engine/core/core.h"
#include "server/engine/persistence/journal_writer.h"

namespace stride::engine {
namespace {

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

TenantTransaction::TenantTransaction(Core& core, int partition)
    : core_(core), partition_(partition), taken_(PartitionBit(partition)) {
  NoteBegin();
  core.partitions.Lock(partition);
}

TenantTransaction::TenantTransaction(Core& core, int partition, std::adopt_lock_t)
    : core_(core), partition_(partition), taken_(PartitionBit(partition)) {
  NoteBegin();
}

std::optional<TenantTransaction> TenantTransaction::IfFree(Core& core, const TenantId& tenant) {
  const int partition = stride::PartitionOf(tenant);
  if (!core.partitions.TryLock(partition)) return std::nullopt;
  return std::optional<TenantTransaction>(std::in_place, core, partition, std::adopt_lock);
}

TenantTransaction::~TenantTransaction() {
  End();
  RunDeferred();
}

uint64_t TenantTransaction::buffer_partitions() const {
  return is_global() ? core_.reclaimer->used_partitions() : taken_;
}

void TenantTransaction::TakeAll() {
  NoteBegin();
  taken_ = core_.partitions.LockUsed();
  core_.reclaimer->LevelUses();
}

void TenantTransaction::End() {
  if (!work_.empty()) core_.settle(*this);
  core_.journal_writer->Commit(*this);
  // Or a global transaction would not wait for this one.
  assert((taken_ & ~core_.partitions.used()) == 0);
  for (const DeviceChange& change : device_changes_)
    change.AddTo(core_.device_accounts[change.device]);
  device_changes_.clear();
  if (is_global()) {
    core_.reclaimer->LevelUses();
  } else {
    core_.reclaimer->EndUses(partition_);
  }
  core_.partitions.Unlock(std::exchange(taken_, 0));
  if (is_global()) core_.partitions.UnlockCommon();
  NoteEnd();
}

void TenantTransaction::WakeWaiters() {
  Defer([core = &core_] { GlobalTransaction transaction(*core); });
}

void TenantTransaction::RunDeferred() {
  Deferred deferred = std::exchange(deferred_, {});
  for (const auto& worker : std::exchange(outgoing_, {})) {
    worker->Flush();
    STRIDE_CRASH_POINT("scheduler.after_submit");
  }
  for (auto& function : deferred) function();
}

GlobalTransaction::GlobalTransaction(Core& core) : TenantTransaction(core) {
  core.partitions.LockCommon();
  TakeAll();
}

bool GlobalTransaction::Await(const absl::Condition& condition, SteadyTime deadline) {
  if (condition.Eval()) return true;
  End();
  RunDeferred();
  const bool holds = core_.partitions.AwaitCommon(condition, deadline);
  TakeAll();
  return holds;
}

}  // namespace stride::engine
