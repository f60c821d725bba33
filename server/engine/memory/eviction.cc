#include "server/engine/memory/eviction.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/memory/staged_copy.h"

namespace stride::engine {
namespace {

// Normally one eviction and a second try. More are needed only if other tenants took the space in
// between.
constexpr int kMaxRounds = 4;
// Small buffers are evicted in groups: to start a copy costs more than to copy them.
constexpr int64_t kSmallBytes = int64_t{1} << 20;
constexpr size_t kMaxCompany = 256;
// Bytes of the small buffers that join a group, as a part of the memory space.
constexpr uint64_t kCompanyOfPlace = 16;
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
class Eviction::Victims {
 public:
  // Excludes the buffers of tasks that have waited there for memory longer than `turn`: they would
  // have to return, at the cost of other evictions.
  Victims(GlobalTransaction& transaction, Eviction* eviction, const DeviceQueue& queue,
          uint64_t turn)
      : transaction_(transaction), eviction_(eviction), place_(queue.device) {
    eviction->queues_->ForEach(transaction, [&](const DeviceQueue& other) {
      bool is_neighbour = other.device == place_ && &other != &queue;
      if (!is_neighbour || !other.WaitsBefore(turn)) return;
      for (const Use& use : other.memory_queue.front()->uses) kept_.insert(use.buffer.get());
    });
  }

  // The next victim. Null: there is none.
  std::shared_ptr<store::Buffer> Next() {
    for (;;) {
      while (auto buffer = eviction_->core_->reclaimer->NextUsed(place_, spare_, &last_)) {
        ++eviction_->totals_.looked_at;
        bool stays = buffer->pin_count > 0 || eviction_->copies_->IsCopied(transaction_, *buffer) ||
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
  Eviction* const eviction_;
  const int place_;
  std::set<const store::Buffer*> kept_;
  bool spare_ = true;
  store::Reclaimer::Use last_;
  std::vector<std::shared_ptr<store::Buffer>> wanted_;
  std::set<const store::Buffer*> gone_for_nothing_;
};

Eviction::Eviction(Core* core, DeviceQueues* queues, Memory* memory, CopiesInFlight* copies,
                   BlockCopier* copier, MemoryWaiters* waiters, TaskEvents* events)
    : core_(core),
      queues_(queues),
      memory_(memory),
      copies_(copies),
      copier_(copier),
      waiters_(waiters),
      events_(events),
      places_(core->num_places()) {}

Memory::Outcome Eviction::Allocate(GlobalTransaction& transaction, DeviceQueue& queue,
                                   uint64_t size, uint64_t turn, store::Allocation* allocation) {
  queue.last_used = core_->Now();
  for (int i = 0; i < kMaxRounds; ++i) {
    Memory::Outcome outcome = memory_->Allocate(transaction, queue, size, turn, allocation);
    if (outcome != Memory::Outcome::kFull) return outcome;
    outcome = MakeRoom(transaction, queue, size, turn, /*outside=*/false);
    if (outcome != Memory::Outcome::kAllocated) return outcome;
  }
  return Memory::Outcome::kFull;
}

Memory::Outcome Eviction::AllocateScratch(GlobalTransaction& transaction, DeviceQueue& queue,
                                          uint64_t bytes, uint64_t turn) {
  for (int i = 0; i < kMaxRounds; ++i) {
    if (memory_->TakeScratch(transaction, queue, bytes, turn)) return Memory::Outcome::kAllocated;
    Memory::Outcome outcome = MakeRoom(transaction, queue, bytes, turn, /*outside=*/true);
    if (outcome != Memory::Outcome::kAllocated) return outcome;
  }
  return Memory::Outcome::kFull;
}

// For a block in an arena of the queue, or `outside` them all. kAllocated: there is probably room
// now. kLater: evictions are in flight. kFull: all buffers are in use, or no other place has room
// for them.
Memory::Outcome Eviction::MakeRoom(GlobalTransaction& transaction, DeviceQueue& queue,
                                   uint64_t size, uint64_t turn, bool outside) {
  const int place = queue.device;
  if (places_[place].num_copies > 0) return Memory::Outcome::kLater;
  if (std::exchange(places_[place].failed, false)) return Memory::Outcome::kFull;
  if (size > memory_->limit_bytes(place)) return Memory::Outcome::kFull;
  memory_->TrimAll(transaction, queue, turn);
  auto granularity = static_cast<uint64_t>(queue.description.arena_granularity_bytes());
  uint64_t least = outside ? size : store::ArenaPool::LeastArenaFor(size, granularity);
  // A device that refused an arena within its limit has less memory than it reports.
  int64_t room = std::min(memory_->room(transaction, place), static_cast<int64_t>(least) - 1);
  const store::ArenaPool none;  // scratch memory is allocated outside arenas
  EvictionPlan plan(outside ? none : queue.arenas.pool, size, least, room);
  Choice choice = Choose(transaction, queue, turn, &plan);
  std::vector<Victim> going;
  for (size_t i = 0; i < choice.victims.size(); ++i) {
    Victim& victim = choice.victims[i];
    bool goes = plan.enough() ? i >= choice.num_needed || plan.Needed(i) : choice.later;
    if (goes) {
      going.push_back(std::move(victim));
    } else if (victim.to != nullptr) {
      victim.to->arenas.pool.Free(victim.target);
    }
  }
  if (going.empty()) return choice.later ? Memory::Outcome::kLater : Memory::Outcome::kFull;
  Memory::Outcome outcome = Evict(transaction, place, std::move(going));
  return choice.later && outcome == Memory::Outcome::kAllocated ? Memory::Outcome::kLater : outcome;
}

// Adds victims to the plan until they are enough.
Eviction::Choice Eviction::Choose(GlobalTransaction& transaction, const DeviceQueue& queue,
                                  uint64_t turn, EvictionPlan* plan) {
  const int place = queue.device;
  const auto max_company = static_cast<int64_t>(memory_->limit_bytes(place) / kCompanyOfPlace);
  int64_t company = 0;
  Choice choice;
  Victims victims(transaction, this, queue, turn);
  while (auto buffer = victims.Next()) {
    Victim victim{.buffer = buffer,
                  .from = &queues_->Get(transaction, buffer->tenant, place),
                  .to = nullptr,
                  .source = buffer->replicas.at(place)};
    if (plan->enough()) {
      bool along = plan->Own(victim.source) && buffer->size < kSmallBytes &&
                   choice.victims.size() < kMaxCompany && company + buffer->size <= max_company;
      if (!along) break;
      company += buffer->size;
    }
    if (!IsWorthless(*buffer) && !HasOtherCopy(*buffer)) {
      Memory::Outcome outcome = FindTarget(transaction, &victim, turn);
      choice.later = outcome == Memory::Outcome::kLater;
      if (choice.later) break;
      if (outcome == Memory::Outcome::kFull) continue;
    }
    if (!plan->enough()) {
      plan->Add(victim.source);
      ++choice.num_needed;
    }
    choice.victims.push_back(std::move(victim));
  }
  return choice;
}

// Allocates a block in the next place that has room. It belongs to the buffer's tenant, as on
// devices.
Memory::Outcome Eviction::FindTarget(GlobalTransaction& transaction, Victim* victim,
                                     uint64_t turn) {
  auto size = static_cast<uint64_t>(victim->buffer->size);
  for (int place : {core_->memory_place(), core_->disk_place()}) {
    if (place <= victim->from->device || size > memory_->limit_bytes(place)) continue;
    if (core_->Now() < places_[place].closed_until) continue;
    victim->to = &queues_->Get(transaction, victim->buffer->tenant, place);
    Memory::Outcome outcome = Allocate(transaction, *victim->to, size, turn, &victim->target);
    if (outcome != Memory::Outcome::kFull) return outcome;
  }
  victim->to = nullptr;
  return Memory::Outcome::kFull;
}

Memory::Outcome Eviction::Evict(GlobalTransaction& transaction, int place,
                                std::vector<Victim> victims) {
  std::vector<Victim> copied;
  bool dropped = false;
  for (Victim& victim : victims) {
    store::Buffer& buffer = *victim.buffer;
    if (victim.to != nullptr) {
      copies_->Begin(transaction, buffer, victim.to->device);
      ++victim.from->num_copies;
      ++victim.to->num_copies;
      copied.push_back(std::move(victim));
    } else if (IsWorthless(buffer) || HasOtherCopy(buffer)) {
      // Checks again: the search for other buffers' targets may have evicted the other copy.
      if (!IsWorthless(buffer)) totals_.dropped_bytes += buffer.size;
      buffer.DropReplica(place);
      dropped = true;
    }
  }
  if (copied.empty()) return dropped ? Memory::Outcome::kAllocated : Memory::Outcome::kFull;
  places_[place].num_copies = static_cast<int>(copied.size());
  core_->executor.Run([this, copied = std::move(copied)] { CopyAll(copied); });
  return Memory::Outcome::kLater;
}

void Eviction::CopyAll(const std::vector<Victim>& victims) {
  for (const Victim& victim : victims) {
    absl::Status status = CopyWithSuccessors([&] {
      return copier_->Copy(*victim.from, victim.source, *victim.to, victim.target,
                           static_cast<uint64_t>(victim.buffer->size));
    });
    GlobalTransaction transaction(*core_);
    Copied(transaction, victim, status);
  }
}

void Eviction::Copied(GlobalTransaction& transaction, const Victim& victim,
                      const absl::Status& status) {
  if (core_->ending && !status.ok()) return;
  store::Buffer& buffer = *victim.buffer;
  const int place = victim.from->device;
  const CopiesInFlight::Copy copy = copies_->End(transaction, buffer, victim.to->device);
  --victim.from->num_copies;
  --victim.to->num_copies;
  victim.to->last_used = core_->Now();
  --places_[place].num_copies;
  auto source = buffer.replicas.find(place);
  bool there = source != buffer.replicas.end() && source->second.arena == victim.source.arena &&
               source->second.offset == victim.source.offset;
  if (status.ok() && there && !copy.stale) {
    buffer.AddReplica(victim.to->device, victim.target);
    totals_.spilled_bytes += buffer.size;
    // If a reader has pinned the buffer since, both copies stay, and its next eviction copies
    // nothing.
    if (buffer.pin_count == 0 && !copies_->IsCopied(transaction, buffer)) buffer.DropReplica(place);
  } else {
    core_->reclaimer->Add({buffer.tenant, victim.to->device, victim.target});
    if (!status.ok()) {
      buffer.Touch();  // the next eviction tries others first
      places_[place].failed = true;
      CopyFailed(transaction, victim, status);
    }
  }
  if (status.ok() && victim.to->device == core_->disk_place()) memory_->FileWorked(transaction);
  for (const auto& writer : copy.writers) events_->Evaluate(transaction, writer);
  waiters_->Changed(transaction);
}

void Eviction::CopyFailed(GlobalTransaction& transaction, const Victim& victim,
                          const absl::Status& status) {
  if (victim.to->device != core_->disk_place()) {
    core_->options.log(absl::StrCat("an idle array could not leave ", victim.from->description.id(),
                                    ": ", status.message()));
    return;
  }
  places_[core_->disk_place()].closed_until = core_->Now() + kFailedWritePause;
  memory_->FileFailed(transaction, status);
}

}  // namespace stride::engine
