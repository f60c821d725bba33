#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/base/block_pool.h"
#include "server/base/crash_point.h"
#include "server/base/executor.h"
#include "server/base/spin.h"
#include "server/base/surroundings.h"
#include "server/base/timer.h"
#include "server/broker/broker.h"
#include "server/scheduler/engine.h"
#include "server/scheduler/recorder.h"
#include "server/session/catalogue.h"
#include "server/session/tenant_accounts.h"
#include "server/store/buffer.h"

namespace stride::scheduler {

inline identity::Quota DefaultQuota(const EngineOptions& options) {
  return {.operations = options.max_queued_tasks,
          .sessions = options.max_sessions,
          .region_bytes = options.region_bytes / 2};
}

class Durability;

inline wire::DeviceDescription DescribePlace(const char* id, int64_t bytes, bool host_memory) {
  wire::DeviceDescription place;
  place.set_id(id);
  place.set_memory_bytes(bytes);
  place.set_host_memory(host_memory);
  place.set_arena_granularity_bytes(4096);
  return place;
}

// What every part of the engine shares. One lock guards sessions, arrays, tasks and lanes: the
// sections under it are short and never block on a worker, a file or a client.
struct Core {
  Core(EngineOptions options, broker::Broker* broker)
      : options(std::move(options)),
        broker(broker),
        memory_description(DescribePlace("spill:memory", this->options.spill_memory_bytes, true)),
        disk_description(DescribePlace("spill:disk", this->options.spill_disk_bytes, false)) {}

  const EngineOptions options;
  broker::Broker* const broker;
  const wire::DeviceDescription memory_description, disk_description;
  // Shared, since buffers may outlive the engine.
  const std::shared_ptr<session::TenantAccounts> accounts =
      std::make_shared<session::TenantAccounts>(DefaultQuota(options));
  const std::shared_ptr<store::Reclaimer> reclaimer = std::make_shared<store::Reclaimer>(
      [accounts = accounts](const TenantId& tenant, int64_t bytes) {
        accounts->AddArrayBytes(tenant, bytes);
      });

  absl::Mutex mutex;
  // Holds the lock over several calls (Engine::Together). Compares equal only in that thread, and
  // so needs no lock to be asked.
  std::atomic<std::thread::id> together{};
  session::Catalogue catalogue;  // guarded by mutex
  using Deferred =
      std::vector<absl::AnyInvocable<void()>, PoolAllocator<absl::AnyInvocable<void()>>>;
  Deferred deferred;  // guarded by mutex; see Locked
  // With tasks to be sent once the lock is given back. Guarded by mutex.
  absl::InlinedVector<std::shared_ptr<broker::Worker>, 2> outgoing;
  bool draining = false;             // guarded by mutex
  Recorder recorder{this};           // guarded by mutex
  Durability* durability = nullptr;  // null: nothing is kept on disk

  Timer timer;
  Executor executor{64};  // moves and callbacks, which may wait for what starter does
  Executor starter{8};    // workers and arenas: waits for nothing else of ours
  Executor streams{64};   // operations in pieces, which wait for all of these

  // No function of the timer or the executor runs afterwards. The lock must not be held.
  void Stop() {
    timer.Stop();
    streams.Stop();
    executor.Stop();
    starter.Stop();
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

  absl::Time Now() const { return stride::Now(); }
};

// Holds the lock. What was changed meanwhile is recorded before it is given back. Afterwards, on
// this thread, workers are sent their tasks, and callbacks deferred meanwhile run, so that they may
// call anything. Within Engine::Together it is part of that section and does nothing of its own.
class Locked {
 public:
  explicit Locked(Core& core)
      : core_(core),
        within_(core.together.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    // Whoever has it gives it back within microseconds: to sleep meanwhile takes longer.
    const auto take = [this] { return core_.mutex.TryLock(); };
    if (!within_ && !take() && !SpinUntil(take, kPatience)) core_.mutex.Lock();
  }
  ~Locked() {
    if (within_) return;
    core_.recorder.Commit();
    Core::Deferred work = std::exchange(core_.deferred, {});
    const auto outgoing = std::exchange(core_.outgoing, {});
    core_.mutex.Unlock();
    for (const auto& worker : outgoing) {
      worker->Flush();
      STRIDE_CRASH_POINT("scheduler.after_submit");
    }
    for (auto& function : work) function();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  static constexpr absl::Duration kPatience = absl::Microseconds(100);

  Core& core_;
  const bool within_;
};

}  // namespace stride::scheduler
