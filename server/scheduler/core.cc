#include "server/scheduler/core.h"

#include "server/base/crash_point.h"
#include "server/base/surroundings.h"
#include "server/scheduler/recorder.h"

namespace stride::scheduler {
namespace {

bool IsUsed(const Core& core, int stripe) {
  return (core.used_stripes.load(std::memory_order_acquire) & StripeBit(stripe)) != 0;
}

// All stripes that are in use, and so all that can be; Core::mutex is held.
void TakeStripes(Section& section) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  section.stripe = Section::kAll;
  section.taken = section.core->used_stripes.load(std::memory_order_relaxed);
  ForEachBit(section.taken, [&](int stripe) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    section.core->stripes[stripe].mutex.Lock();
  });
  section.core->reclaimer->LevelUses();
}

void GiveStripes(Section& section) {
  ForEachBit(std::exchange(section.taken, 0), [&](int stripe) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    section.core->stripes[stripe].mutex.Unlock();
  });
}

// What a section leaves to be done without a lock.
void DoDeferred(Section::Deferred deferred,
                absl::Span<const std::shared_ptr<broker::Worker>> outgoing) {
  for (const auto& worker : outgoing) {
    worker->Flush();
    STRIDE_CRASH_POINT("scheduler.after_submit");
  }
  for (auto& function : deferred) function();
}

}  // namespace

Core::Core(EngineOptions options, broker::Broker* broker)
    : options(std::move(options)),
      broker(broker),
      memory_description(DescribePlace("spill:memory", this->options.spill_memory_bytes, true)),
      disk_description(DescribePlace("spill:disk", this->options.spill_disk_bytes, false)),
      recorder(std::make_unique<Recorder>(this)) {}

Core::~Core() = default;

Locked::Locked(Core& core) : core_(core) {
  if (JoinAround(/*all=*/true)) return;
  section_.emplace().core = &core;
  core.mutex.Lock();
  TakeStripes(*section_);
  current_section = &*section_;
}

Locked::Locked(Core& core, int stripe) : core_(core) {
  if (JoinAround(/*all=*/false)) return;
  if (!IsUsed(core, stripe)) {
    // Not while somebody has all that were in use.
    core.mutex.Lock();
    core.used_stripes.fetch_or(StripeBit(stripe), std::memory_order_release);
    core.mutex.Unlock();
  }
  core.stripes[stripe].mutex.Lock();
  BeginOf(stripe);
}

Locked::Locked(Core& core, const TenantId& tenant, IfFree) : core_(core) {
  assert(current_section == nullptr);
  const int stripe = StripeOf(tenant);
  // Of one that no section of its own has come to yet, as after a restart, a section of all has no
  // lock: adding it would be to wait.
  if (IsUsed(core, stripe) && core.stripes[stripe].mutex.TryLock()) BeginOf(stripe);
}

// Its lock is held.
void Locked::BeginOf(int stripe) {
  Section& section = section_.emplace();
  section.core = &core_;
  section.stripe = stripe;
  section.taken = StripeBit(stripe);
  current_section = &section;
}

// False: there is no section around this one.
bool Locked::JoinAround(bool all) {
  Section* const around = current_section;
  if (around == nullptr || around->core != &core_) return false;
  assert(around->together);
  if (!all || around->stripe == Section::kAll) return true;
  // Its own tenant's sections come between; nobody is in the middle of anything here.
  EndPart();
  GiveStripes(*around);
  core_.mutex.Lock();
  TakeStripes(*around);
  return true;
}

void Locked::EndPart() {
  core_.recorder->Commit();
  Section& section = core_.section();
  // Or a section of all would not wait for this one.
  assert((section.taken & ~core_.used_stripes.load(std::memory_order_relaxed)) == 0);
  for (const DeviceChange& change : section.device_changes)
    change.AddTo(core_.device_accounts[change.device]);
  section.device_changes.clear();
  if (section.stripe == Section::kAll) {
    core_.reclaimer->LevelUses();
  } else {
    core_.reclaimer->EndUses(section.stripe);
  }
}

void Locked::GiveBack() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  EndPart();
  current_section = nullptr;
  GiveStripes(*section_);
  if (section_->stripe == Section::kAll) core_.mutex.Unlock();
}

Locked::~Locked() {
  if (!section_.has_value()) return;
  GiveBack();
  DoDeferred(std::move(section_->deferred), section_->outgoing);
}

bool Locked::Await(const absl::Condition& condition,
                   SteadyTime deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  core_.AssertAll();
  assert(section_.has_value());
  if (condition.Eval()) return true;
  GiveBack();
  DoDeferred(std::exchange(section_->deferred, {}), std::exchange(section_->outgoing, {}));
  core_.mutex.Lock();
  const bool holds = stride::Await(core_.mutex.base(), condition, deadline);
  TakeStripes(*section_);
  current_section = &*section_;
  return holds;
}

}  // namespace stride::scheduler
