// Scheduler: eviction of idle buffers from a full device, to host memory and then to files.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/scheduler/eviction_plan.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/staged_copy.h"

namespace stride::scheduler {
namespace {

// Normally one eviction and a second try. More are needed only if other tenants took the space in
// between.
constexpr int kMaxRounds = 4;
// Small buffers are evicted in groups: to start a copy costs more than to copy them.
constexpr int64_t kSmallBytes = int64_t{1} << 20;
constexpr size_t kMaxCompany = 256;
constexpr absl::Duration kSpillLogInterval = absl::Seconds(10);
// Equals the retry delay in the error that clients get.
constexpr absl::Duration kFailedWritePause = absl::Seconds(1);

bool HasOtherCopy(const store::Buffer& buffer) {
  return buffer.replicas.size() > 1 || buffer.inline_bytes != nullptr;
}

// The content is never read again: it is an error, or a task is about to overwrite all of it.
bool IsWorthless(const store::Buffer& buffer) {
  if (!buffer.error.ok()) return true;
  if (buffer.writer == nullptr) return false;
  const auto& writer = static_cast<const Task&>(*buffer.writer);
  return std::any_of(writer.uses.begin(), writer.uses.end(), [&](const Use& use) {
    return use.buffer.get() == &buffer && use.write && use.fresh;
  });
}

// Whether tasks wait for the buffer.
bool IsWanted(const store::Buffer& buffer) {
  return buffer.writer != nullptr || !buffer.readers.empty();
}

}  // namespace

// Finds victims for the eviction from one place, lazily. Buffers with another copy come first, then
// the others. Each group is in order of least recent use, followed by the buffers that tasks wait
// for, last in the queue first. Evictions elsewhere may run concurrently.
class Scheduler::Leavers {
 public:
  // Excludes the buffers of tasks that have waited there for memory longer than `turn`: they would
  // have to return, at the cost of other evictions.
  Leavers(GlobalTransaction& transaction, Scheduler* scheduler, const Lane& lane, uint64_t turn)
      : transaction_(transaction), scheduler_(scheduler), place_(lane.device) {
    scheduler->lanes_.ForEach(transaction, [&](const Lane& other) {
      bool beside = other.device == place_ && &other != &lane;
      if (!beside || !other.WaitsBefore(turn)) return;
      for (const Use& use : other.memory_queue.front()->uses) kept_.insert(use.buffer.get());
    });
  }

  // The next victim. Null: there is none.
  std::shared_ptr<store::Buffer> Next() {
    for (;;) {
      while (auto buffer = scheduler_->core_->reclaimer->NextUsed(place_, spare_, &last_)) {
        ++scheduler_->spilled_.looked_at;
        bool stays = buffer->num_holders > 0 || scheduler_->IsMoving(transaction_, buffer.get()) ||
                     kept_.count(buffer.get()) > 0;
        if (stays) continue;
        // The buffer may have been handed out in the first group and have lost its other copy
        // since.
        if (!spare_ && gone_for_nothing_.count(buffer.get()) > 0) continue;
        if (IsWanted(*buffer) && !IsWorthless(*buffer)) {
          wanted_.push_back(std::move(buffer));
          continue;
        }
        return HandOut(std::move(buffer));
      }
      if (!wanted_.empty()) {
        auto buffer = std::move(wanted_.back());
        wanted_.pop_back();
        return HandOut(std::move(buffer));
      }
      if (!std::exchange(spare_, false)) return nullptr;
      last_ = {};
    }
  }

 private:
  std::shared_ptr<store::Buffer> HandOut(std::shared_ptr<store::Buffer> buffer) {
    if (spare_) gone_for_nothing_.insert(buffer.get());
    return buffer;
  }

  GlobalTransaction& transaction_;
  Scheduler* const scheduler_;
  const int place_;
  std::set<const store::Buffer*> kept_;
  bool spare_ = true;
  store::Reclaimer::Use last_;
  std::vector<std::shared_ptr<store::Buffer>> wanted_;
  std::set<const store::Buffer*> gone_for_nothing_;
};

Memory::Outcome Scheduler::Allocate(GlobalTransaction& transaction, Lane& lane, uint64_t size,
                                    uint64_t turn, store::Allocation* allocation) {
  lane.last_used = core_->Now();
  for (int i = 0; i < kMaxRounds; ++i) {
    Memory::Outcome outcome = memory_.Allocate(transaction, lane, size, turn, allocation);
    if (outcome != Memory::Outcome::kFull) return outcome;
    outcome = MakeRoom(transaction, lane, size, turn);
    if (outcome != Memory::Outcome::kAllocated) return outcome;
  }
  return Memory::Outcome::kFull;
}

Memory::Outcome Scheduler::AllocateScratch(GlobalTransaction& transaction, Lane& lane,
                                           uint64_t bytes, uint64_t turn) {
  for (int i = 0; i < kMaxRounds; ++i) {
    if (memory_.TakeScratch(transaction, lane, bytes, turn)) return Memory::Outcome::kAllocated;
    Memory::Outcome outcome = MakeRoom(transaction, lane, bytes, turn, /*outside=*/true);
    if (outcome != Memory::Outcome::kAllocated) return outcome;
  }
  return Memory::Outcome::kFull;
}

// kAllocated: there is probably room now. kLater: evictions are in flight. kFull: all buffers are
// in use, or no other place has room for them.
Memory::Outcome Scheduler::MakeRoom(GlobalTransaction& transaction, Lane& lane, uint64_t size,
                                    uint64_t turn, bool outside) {
  int place = lane.device;
  if (spilling_[place].under_way > 0) return Memory::Outcome::kLater;
  if (std::exchange(spilling_[place].failed, false)) return Memory::Outcome::kFull;
  if (size > memory_.limit_bytes(place)) return Memory::Outcome::kFull;
  memory_.TrimAll(transaction, lane, turn);
  auto granularity = static_cast<uint64_t>(lane.description.arena_granularity_bytes());
  uint64_t least = outside ? size : store::ArenaPool::LeastArenaFor(size, granularity);
  // A device that refused an arena within its limit has less memory than it reports.
  int64_t room = std::min(memory_.room(transaction, place), static_cast<int64_t>(least) - 1);
  const store::ArenaPool none;  // scratch memory is allocated outside arenas
  EvictionPlan plan(outside ? none : lane.pool, size, least, room);
  std::vector<Spill> spills;
  bool later = false;
  int64_t company = 0, max_company = static_cast<int64_t>(memory_.limit_bytes(place) / 16);
  size_t num_needed = 0;  // the victims after them are small ones that join the group
  Leavers leavers(transaction, this, lane, turn);
  while (auto buffer = leavers.Next()) {
    Spill spill{.buffer = buffer,
                .from = &LaneFor(transaction, buffer->tenant, place),
                .to = nullptr,
                .source = buffer->replicas.at(place)};
    if (plan.enough()) {
      bool along = plan.Own(spill.source) && buffer->size < kSmallBytes &&
                   spills.size() < kMaxCompany && company + buffer->size <= max_company;
      if (!along) break;
      company += buffer->size;
    }
    if (!IsWorthless(*buffer) && !HasOtherCopy(*buffer)) {
      Memory::Outcome outcome = FindTarget(transaction, &spill, turn);
      later = outcome == Memory::Outcome::kLater;
      if (later) break;
      if (outcome == Memory::Outcome::kFull) continue;
    }
    bool needed = !plan.enough();
    if (needed) {
      plan.Add(spill.source);
      ++num_needed;
    }
    spills.push_back(std::move(spill));
  }
  std::vector<Spill> going;
  for (size_t i = 0; i < spills.size(); ++i) {
    bool goes = plan.enough() ? i >= num_needed || plan.Needed(i) : later;
    if (goes) {
      going.push_back(std::move(spills[i]));
    } else if (spills[i].to != nullptr) {
      spills[i].to->pool.Free(spills[i].target);
    }
  }
  if (going.empty()) return later ? Memory::Outcome::kLater : Memory::Outcome::kFull;
  Memory::Outcome outcome = Evict(transaction, place, std::move(going));
  return later && outcome == Memory::Outcome::kAllocated ? Memory::Outcome::kLater : outcome;
}

// Allocates a block in the next place that has room. It belongs to the buffer's tenant, as on
// devices.
Memory::Outcome Scheduler::FindTarget(GlobalTransaction& transaction, Spill* spill, uint64_t turn) {
  auto size = static_cast<uint64_t>(spill->buffer->size);
  for (int place : {core_->memory_place(), core_->disk_place()}) {
    if (place <= spill->from->device || size > memory_.limit_bytes(place)) continue;
    if (core_->Now() < spilling_[place].closed_until) continue;
    spill->to = &LaneFor(transaction, spill->buffer->tenant, place);
    Memory::Outcome outcome = Allocate(transaction, *spill->to, size, turn, &spill->target);
    if (outcome != Memory::Outcome::kFull) return outcome;
  }
  spill->to = nullptr;
  return Memory::Outcome::kFull;
}

Memory::Outcome Scheduler::Evict(GlobalTransaction& transaction, int place,
                                 std::vector<Spill> spills) {
  std::vector<Spill> copies;
  bool dropped = false;
  for (Spill& spill : spills) {
    store::Buffer& buffer = *spill.buffer;
    if (spill.to != nullptr) {
      moves_[{&buffer, spill.to->device}];
      ++spill.from->num_copies;
      ++spill.to->num_copies;
      copies.push_back(std::move(spill));
    } else if (IsWorthless(buffer) || HasOtherCopy(buffer)) {
      // Checks again: the search for other buffers' targets may have evicted the other copy.
      if (!IsWorthless(buffer)) spilled_.dropped_bytes += buffer.size;
      buffer.DropReplica(place);
      dropped = true;
    }
  }
  if (copies.empty()) return dropped ? Memory::Outcome::kAllocated : Memory::Outcome::kFull;
  spilling_[place].under_way = static_cast<int>(copies.size());
  core_->executor.Run([this, copies = std::move(copies)] {
    for (const Spill& spill : copies) {
      absl::Status status = CopySpill(spill);
      GlobalTransaction transaction(*core_);
      SpillDone(transaction, spill, status);
    }
  });
  return Memory::Outcome::kLater;
}

absl::Status Scheduler::CopySpill(const Spill& spill) {
  return CopyWithSuccessors([&] {
    return CopyBlock(spill.from, spill.source, {}, *spill.to, spill.target,
                     static_cast<uint64_t>(spill.buffer->size));
  });
}

void Scheduler::SpillDone(GlobalTransaction& transaction, const Spill& spill,
                          const absl::Status& status) {
  if (ending_ && !status.ok()) return;
  store::Buffer& buffer = *spill.buffer;
  int place = spill.from->device;
  auto move = moves_.find({&buffer, spill.to->device});
  bool stale = move->second.stale;
  std::vector<std::shared_ptr<Task>> writers = std::move(move->second.writers);
  moves_.erase(move);
  --spill.from->num_copies;
  --spill.to->num_copies;
  spill.to->last_used = core_->Now();
  --spilling_[place].under_way;
  auto source = buffer.replicas.find(place);
  bool there = source != buffer.replicas.end() && source->second.arena == spill.source.arena &&
               source->second.offset == spill.source.offset;
  if (status.ok() && there && !stale) {
    buffer.AddReplica(spill.to->device, spill.target);
    spilled_.spilled_bytes += buffer.size;
    // If a reader has pinned the buffer since, both copies stay, and its next eviction copies
    // nothing.
    if (buffer.num_holders == 0 && !IsMoving(transaction, &buffer)) buffer.DropReplica(place);
  } else {
    core_->reclaimer->Add({buffer.tenant, spill.to->device, spill.target});
    if (!status.ok()) {
      buffer.Touch();  // the next eviction tries others first
      spilling_[place].failed = true;
      SpillFailed(transaction, spill, status);
    }
  }
  if (status.ok() && spill.to->device == core_->disk_place()) memory_.FileWorked(transaction);
  for (const auto& writer : writers) Evaluate(transaction, writer);
  MemoryChanged(transaction);
}

void Scheduler::SpillFailed(GlobalTransaction& transaction, const Spill& spill,
                            const absl::Status& status) {
  if (spill.to->device != core_->disk_place()) {
    core_->options.log(absl::StrCat("an idle array could not leave ", spill.from->description.id(),
                                    ": ", status.message()));
    return;
  }
  spilling_[core_->disk_place()].closed_until = core_->Now() + kFailedWritePause;
  memory_.FileFailed(transaction, status);
}

void Scheduler::ContentChanges(TenantTransaction& transaction, const Task& task) {
  if (moves_.empty()) return;
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr || !use.write) continue;
    for (auto move = moves_.lower_bound({use.buffer.get(), 0});
         move != moves_.end() && move->first.first == use.buffer.get(); ++move) {
      move->second.stale = true;
    }
  }
}

bool Scheduler::IsMoving(TenantTransaction& transaction, const store::Buffer* buffer) const {
  auto move = moves_.lower_bound({const_cast<store::Buffer*>(buffer), 0});
  return move != moves_.end() && move->first.first == buffer;
}

// Logs the totals at intervals during evictions, so that an operator can see why work is slow.
void Scheduler::LogSpill(GlobalTransaction& transaction) {
  if (spilled_.spilled_bytes == logged_spilled_bytes_ || core_->Now() < next_spill_log_) return;
  logged_spilled_bytes_ = spilled_.spilled_bytes;
  next_spill_log_ = core_->Now() + kSpillLogInterval;
  SpillSample sample = SampleSpill(transaction);
  core_->options.log(absl::StrCat("devices are full: idle arrays hold ", sample.memory_bytes,
                                  " bytes of host memory and ", sample.disk_bytes,
                                  " of disk; in all ", sample.spilled_bytes, " bytes have left, ",
                                  sample.returned_bytes, " came back"));
}

// No task in place begins while a thread of the daemon copies the buffer's bytes. A write by a
// worker only makes the copy stale.
bool Scheduler::WaitsForCopy(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || !use.write || use.fresh) continue;
    auto move = moves_.lower_bound({use.buffer.get(), 0});
    if (move == moves_.end() || move->first.first != use.buffer.get()) continue;
    move->second.writers.push_back(task);
    return true;
  }
  return false;
}

SpillSample Scheduler::SampleSpill(GlobalTransaction& transaction) const {
  SpillSample sample = spilled_;
  sample.memory_bytes =
      static_cast<int64_t>(memory_.used_bytes(transaction, core_->memory_place()));
  sample.memory_arena_bytes =
      static_cast<int64_t>(memory_.arena_bytes(transaction, core_->memory_place()));
  sample.disk_bytes = static_cast<int64_t>(memory_.used_bytes(transaction, core_->disk_place()));
  sample.disk_arena_bytes =
      static_cast<int64_t>(memory_.arena_bytes(transaction, core_->disk_place()));
  return sample;
}

}  // namespace stride::scheduler
