#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/broker/worker.h"
#include "server/engine/core/fair_share.h"
#include "server/engine/core/processor_time.h"
#include "server/engine/core/task.h"
#include "server/engine/core/worker_start.h"
#include "server/ops/bind.h"
#include "server/store/arena_pool.h"
#include "server/wire/task_packet.h"

namespace stride::engine {

// One tenant on one device: its memory there, its worker process, and the tasks on their way to it.
// The tenant's transactions guard it.
struct DeviceQueue {
  static constexpr size_t kNumBound = 8;

  DeviceQueue(TenantId tenant, int device, const wire::DeviceDescription& description)
      : tenant(std::move(tenant)), device(device), description(description) {
    flow.queue = this;
  }

  const TenantId tenant;
  const int device;
  const wire::DeviceDescription& description;

  // Changed by Memory.
  struct Arenas {
    store::ArenaPool pool;
    // Host memory that the device uses in place, for the small inputs and results of calls: no
    // copy, and so one round trip to the worker in place of three. Empty where `pool` is host
    // memory.
    store::ArenaPool zero_copy;
    bool growing = false;      // an arena is being made
    bool grow_failed = false;  // the last try failed; the next allocation reports it once
    absl::Status grow_lack;    // resources that the machine lacked for it
  };
  Arenas arenas;
  std::weak_ptr<broker::Worker> dying;  // died when asked for an arena; not reported yet
  bool AwaitsDeath() const { return worker != nullptr && dying.lock() == worker; }
  // Tasks, among those in `preparing`, that wait for memory: by priority, then age. The first takes
  // all that it needs at once, and none passes it.
  std::list<std::shared_ptr<Task>> memory_queue;
  // Whether its first came to wait before one with this turn: who came later must not take what it
  // has gathered, or two would take it from each other for ever.
  bool WaitsBefore(uint64_t turn) const {
    return !memory_queue.empty() && memory_queue.front()->memory.turn < turn;
  }

  std::shared_ptr<broker::Worker> worker;  // null: none runs
  uint64_t worker_record = 0;              // the worker's id in the journal
  WorkerStart start{this, device};
  ProcessorTime processor_time;  // for a CPU device's worker
  // State of the worker's memory. Changed by CodeLoader and Modules.
  struct Contents {
    struct Graph {
      std::weak_ptr<const ProgramLaunch> program_launch;
      std::weak_ptr<const CompiledProgram> compiled;  // with whose steps
      uint64_t last_use = 0;
    };
    // Forgets all, which does not apply to the next worker.
    void Clear();

    // Arenas that the worker has mapped; true: another device's, from which a copy has come.
    std::map<uint64_t, bool> mapped;
    std::set<uint64_t> modules;
    std::map<uint64_t, absl::Status> load_errors;       // by module
    std::map<uint64_t, wire::ModuleLoaded> attributes;  // of modules that the worker described
    std::map<uint64_t, Graph> graphs;                   // by ProgramLaunch::id
    uint64_t num_graph_uses = 0;
    std::atomic<uint64_t> num_answers{0};  // about modules so far
    int num_waiting = 0;  // threads that wait for an answer; changes in global transactions
  };
  Contents contents;

  // Those that it prepares, in the order of coming. Linked through themselves: nearly every task
  // comes and goes here.
  class Preparing {
   public:
    bool empty() const { return first_ == nullptr; }
    void Add(Task& task);
    // One that is not there may be given.
    void Remove(Task& task);
    std::vector<std::shared_ptr<Task>> All() const;

   private:
    Task *first_ = nullptr, *last_ = nullptr;
  };
  Preparing preparing;
  struct InFlight {
    uint64_t sequence;
    std::shared_ptr<Task> task;  // null: taken out of the worker's queue, its result means nothing
    bool last;  // the task's own launch; others before it (zero fills) belong to it
    // Instead of `task`, one that has ended while its launch still waits its turn, and what that
    // will read and write.
    std::shared_ptr<Task> given_up = nullptr;
    std::vector<Use> held = {};

    const std::shared_ptr<Task>& launched() const { return task != nullptr ? task : given_up; }
  };
  using InFlightQueue = std::deque<InFlight, PoolAllocator<InFlight>>;
  // Plans that it was sent lately, each where its address says, to be sent again elsewhere.
  struct Bound {
    std::shared_ptr<const Planned> planned;
    ops::Rebinder rebinder;
  };
  // Changed by Dispatcher.
  struct Sending {
    std::deque<std::shared_ptr<Task>, PoolAllocator<std::shared_ptr<Task>>> ready;  // by priority
    InFlightQueue in_flight;                                                        // by sequence
    uint64_t next_sequence = 1;  // for this worker
    // Cancellations that the worker has not answered, by first sequence: a task and its dependents.
    std::map<uint64_t, std::vector<std::shared_ptr<Task>>> recalls;
    bool watching_start = false;  // a timer will look whether the first task in flight has begun
    // Where it makes its packets, one after another: they take no other memory.
    wire::TaskPacket packet;
    std::array<Bound, kNumBound> bound;
  };
  Sending sending;
  FairShare::Flow flow;  // its share of the device
  bool killed = false;   // its worker, for a task that outlived its grace
  int num_copies = 0;    // transfers that use the worker now
  int num_holding = 0;   // tasks here that have their memory
  SteadyTime last_used;
  bool streaming = false;  // an operation runs in pieces (out_of_core.h)
};

// Maps an arena into the queue's worker: of its own device, or of a peer that it reads.
absl::Status MapArena(DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena, bool peer);
// Unmaps it where it is mapped. A worker that is dying answers UNAVAILABLE; its mappings go with
// it.
void UnmapArena(DeviceQueue& queue, const store::Arena& arena);

}  // namespace stride::engine
