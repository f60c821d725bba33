#include "server/scheduler/core.h"

#include "server/base/crash_point.h"
#include "server/base/spin.h"

namespace stride::scheduler {
namespace {

constexpr absl::Duration kPatience = absl::Microseconds(100);

// Whoever has it gives it back within microseconds: to sleep meanwhile takes longer.
void Take(absl::Mutex& mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const auto take = [&mutex] { return mutex.TryLock(); };
  if (!take() && !SpinUntil(take, kPatience)) mutex.Lock();
}

// All stripes that are in use, and so all that can be; Core::mutex is held.
void TakeStripes(Section& section) {
  section.stripe = Section::kAll;
  section.taken = section.core->used_stripes.load(std::memory_order_relaxed);
  ForEachBit(section.taken, [&](int stripe) { Take(section.core->stripes[stripe].mutex); });
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

Locked::Locked(Core& core) : core_(core) {
  if (JoinAround(/*all=*/true)) return;
  section_.emplace().core = &core;
  Take(core.mutex);
  TakeStripes(*section_);
  current_section = &*section_;
}

Locked::Locked(Core& core, int stripe) : core_(core) {
  if (JoinAround(/*all=*/false)) return;
  Section& section = section_.emplace();
  section.core = &core;
  section.stripe = stripe;
  section.taken = uint64_t{1} << section.stripe;
  if ((core.used_stripes.load(std::memory_order_acquire) & section.taken) == 0) {
    // Not while somebody has all that were in use.
    absl::MutexLock lock(&core.mutex);
    core.used_stripes.fetch_or(section.taken, std::memory_order_release);
  }
  Take(core.stripes[section.stripe].mutex);
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
  Take(core_.mutex);
  TakeStripes(*around);
  return true;
}

void Locked::EndPart() {
  core_.recorder.Commit();
  Section& section = core_.section();
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
                   absl::Time deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  core_.AssertAll();
  assert(section_.has_value());
  if (condition.Eval()) return true;
  GiveBack();
  DoDeferred(std::exchange(section_->deferred, {}), std::exchange(section_->outgoing, {}));
  Take(core_.mutex);
  const bool holds = stride::Await(core_.mutex, condition, deadline);
  TakeStripes(*section_);
  current_section = &*section_;
  return holds;
}

}  // namespace stride::scheduler
