#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/base/bits.h"
#include "server/base/block_pool.h"
#include "server/base/executor.h"
#include "server/base/fair_mutex.h"
#include "server/base/stripe.h"
#include "server/base/surroundings.h"
#include "server/base/timer.h"
#include "server/broker/broker.h"
#include "server/scheduler/device_account.h"
#include "server/scheduler/options.h"
#include "server/session/catalogue.h"
#include "server/session/tenant_accounts.h"
#include "server/store/buffer.h"

namespace stride::scheduler {

inline identity::Quota DefaultQuota(const EngineOptions& options) {
  return {.control_bytes = options.control_bytes,
          .operations = options.max_queued_tasks,
          .sessions = options.max_sessions,
          .region_bytes = options.region_bytes / 2};
}

inline std::vector<std::string> DeviceIds(const broker::Broker& broker) {
  std::vector<std::string> ids;
  for (const wire::DeviceDescription& device : broker.devices()) ids.push_back(device.id());
  return ids;
}

class Durability;
class Recorder;

inline wire::DeviceDescription DescribePlace(const char* id, int64_t bytes, bool host_memory) {
  wire::DeviceDescription place;
  place.set_id(id);
  place.set_memory_bytes(bytes);
  place.set_host_memory(host_memory);
  place.set_arena_granularity_bytes(4096);
  return place;
}

struct Core;
struct Lane;

// What a thread has of an engine's locks, and what it is to do once it has given them back.
struct Section {
  static constexpr int kAll = -1;

  Core* core = nullptr;
  int stripe = kAll;
  uint64_t taken = 0;  // the stripes whose locks it has, one bit each
  using Deferred =
      std::vector<absl::AnyInvocable<void()>, PoolAllocator<absl::AnyInvocable<void()>>>;
  Deferred deferred;
  absl::InlinedVector<std::shared_ptr<broker::Worker>, 2> outgoing;  // with tasks to be sent
  // Within SubmitBatch: other sections of this thread are part of it, and what becomes ready
  // for these lanes waits for its end.
  bool together = false;
  absl::InlinedVector<Lane*, 2> held;
  absl::InlinedVector<int, 2> giving;  // devices whose turns are given further up the stack
  absl::InlinedVector<DeviceChange, 1> device_changes;

  // For its end. Null: nothing has changed of this device.
  DeviceChange* FindChange(int device) {
    for (DeviceChange& change : device_changes) {
      if (change.device == device) return &change;
    }
    return nullptr;
  }
  DeviceChange& ChangeOf(int device) {
    if (DeviceChange* known = FindChange(device)) return *known;
    device_changes.push_back({.device = device});
    return device_changes.back();
  }
};
inline constinit thread_local Section* current_section = nullptr;

// What every part of the engine shares. Its things are guarded by stripes of locks, each for the
// tenants that StripeOf gives it: a section has one of them and touches its tenants' things alone,
// or has all. What belongs to no tenant changes only in sections of the second kind, or has a lock
// of its own (docs/architecture.md, "Sections"). "The engine's lock", wherever it is spoken of, is
// the stripe of the tenant whose things are meant, or all of them; where it must not be held, none
// of them may be. Sections are short and never block on a worker, a file or a client.
struct Core {
  Core(EngineOptions options, broker::Broker* broker);
  ~Core();

  const EngineOptions options;
  broker::Broker* const broker;
  const wire::DeviceDescription memory_description, disk_description;
  // Shared, since buffers may outlive the engine.
  const std::shared_ptr<session::TenantAccounts> accounts =
      std::make_shared<session::TenantAccounts>(DefaultQuota(options), DeviceIds(*broker));
  const std::shared_ptr<store::Reclaimer> reclaimer = std::make_shared<store::Reclaimer>(
      [accounts = accounts](const TenantId& tenant, int64_t bytes, int64_t control_bytes) {
        accounts->AddArrayBytes(tenant, bytes, control_bytes);
      });

  // --- locks. Taken by Locked alone: this one first, then stripes in their order. ---
  FairMutex mutex;  // of those who have all, and of those who wait for something (Locked::Await)
  struct alignas(64) Stripe {
    FairMutex mutex;
  };
  std::array<Stripe, kNumStripes> stripes;
  // Those that any tenant has come to, one bit each; others need no locking. One is added under
  // `mutex`.
  std::atomic<uint64_t> used_stripes{0};

  // This thread's; it has one.
  Section& section() const {
    assert(current_section != nullptr && current_section->core == this);
    return *current_section;
  }
  bool HoldsAll() const { return section().stripe == Section::kAll; }
  // What follows concerns more than one tenant.
  void AssertAll() const { assert(HoldsAll()); }
  // Calls `visit` with each stripe that this thread has and that ever had a buffer.
  template <typename Visit>
  void ForEachStripe(Visit visit) const {
    ForEachBit(HoldsAll() ? reclaimer->used_stripes() : section().taken, visit);
  }
  // The tenant's stripe, which this thread has.
  int StripeFor(const TenantId& tenant) const {
    const int stripe = section().stripe;
    assert(stripe == Section::kAll || stripe == StripeOf(tenant));
    return stripe == Section::kAll ? StripeOf(tenant) : stripe;
  }
  // To be called when the section has ended, on this thread, without a lock.
  template <typename Function>
  void Defer(Function&& function) {
    section().deferred.push_back(std::forward<Function>(function));
  }

  // Of a device or another place, by index.
  std::vector<DeviceAccount> device_accounts =
      std::vector<DeviceAccount>(broker->devices().size() + 2);

  session::Catalogue catalogue{accounts};
  bool draining = false;
  const std::unique_ptr<Recorder> recorder;
  Durability* durability = nullptr;  // null: nothing is kept on disk

  Timer timer;
  Executor executor{64};  // moves and callbacks, which may wait for what starter does
  Executor starter{16};   // workers and arenas: waits for nothing else of ours
  Executor streams{64};   // operations in pieces, which wait for all of these
  Executor turns{16};     // lanes whose turn has begun: waits for their tenants' stripes alone

  // No function of the timer or the executor runs afterwards. The lock must not be held.
  void Stop() {
    timer.Stop();
    streams.Stop();
    executor.Stop();
    starter.Stop();
    turns.Stop();
  }

  // The index of the device of this id; -1: there is none.
  int DeviceIndex(const std::string& id) const {
    const auto& devices = broker->devices();
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].id() == id) return static_cast<int>(i);
    }
    return -1;
  }

  // Beside devices, two more places can hold buffers, in arenas just as devices do, and have
  // indices behind theirs: host memory and files. No task runs there.
  int memory_place() const { return static_cast<int>(broker->devices().size()); }
  int disk_place() const { return memory_place() + 1; }
  int num_places() const { return disk_place() + 1; }
  bool IsDevice(int place) const { return place < memory_place(); }
  const wire::DeviceDescription& Place(int place) const {
    if (place == memory_place()) return memory_description;
    if (place == disk_place()) return disk_description;
    return broker->devices()[place];
  }
  int PlaceIndex(const std::string& id) const {
    if (id == memory_description.id()) return memory_place();
    if (id == disk_description.id()) return disk_place();
    return DeviceIndex(id);
  }

  SteadyTime Now() const { return stride::Now(); }
};

// A section: has the locks while it lives. What was changed meanwhile is recorded before they are
// given back. Afterwards, on this thread, workers are sent their tasks, and functions deferred
// meanwhile run, so that they may call anything. Within SubmitBatch it is part of that section
// and does nothing of its own.
class Locked {
 public:
  // Everybody's.
  explicit Locked(Core& core);
  // Of the tenant's stripe alone. Within a section of all it is that.
  Locked(Core& core, const TenantId& tenant) : Locked(core, StripeOf(tenant)) {}
  Locked(Core& core, int stripe);
  // Likewise, if nobody has it now; else, and where one would have to wait for another reason,
  // `holds` is false, and this does nothing. Not within another section.
  enum class IfFree { kOnly };
  Locked(Core& core, const TenantId& tenant, IfFree);
  bool holds() const { return section_.has_value(); }
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  // Of a section of all: ends it, waits until the condition holds or the deadline, and begins
  // another. The condition is looked at when a section of all ends, with Core::mutex alone: it may
  // depend on what only such sections change, and on atomics whose changes are followed by one.
  bool Await(const absl::Condition& condition, SteadyTime deadline);

  // This one is SubmitBatch.
  void BeginTogether() { section_->together = true; }

 private:
  bool JoinAround(bool all);
  void BeginOf(int stripe);
  void EndPart();
  void GiveBack();

  Core& core_;
  std::optional<Section> section_;  // none: it is part of the one around it
};

}  // namespace stride::scheduler
