#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/base/block_pool.h"
#include "server/base/ids.h"
#include "server/base/printed_text.h"
#include "server/base/steady_time.h"
#include "server/broker/compiled_module.h"
#include "server/engine/core/plan_cache.h"
#include "server/engine/core/program_launch.h"
#include "server/ops/plan.h"
#include "server/session/catalogue.h"
#include "server/store/buffer.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {

struct DeviceQueue;
class TenantTransaction;

// Runs a task that is on no device queue by means of other tasks, its pieces.
class Conductor {
 public:
  virtual ~Conductor() = default;
  // Blocks until the task has ended. The caller has no transaction.
  virtual void Run() = 0;
  // Cancels what is in flight. The task ends soon after.
  virtual void Stop(TenantTransaction& transaction) = 0;
};

// kWaiting -> kPreparing -> kDispatched -> kDone. A worker's death, or a recall, returns a task
// from kDispatched to kWaiting.
enum class TaskState {
  kWaiting,     // earlier accesses have not ended
  kPreparing,   // has a device; waits for code, a worker, memory, or moves of inputs
  kDispatched,  // in the worker's queue or running there; or, for a host access, granted
  kDone,
};

// Attempts to run a task whose workers die while it runs.
inline constexpr int kMaxTaskAttempts = 3;

// How a task uses a buffer.
struct Use {
  std::shared_ptr<store::Buffer> buffer;  // null: a scalar
  bool read = false;
  bool write = false;
  bool fresh = false;  // the task overwrites the buffer's whole content
  // The buffer is an input of the loop or branch of this task. The loop's own task stands in the
  // buffer's order. This task only reads it.
  bool held = false;
  // Index in the buffer's readers, if the task is one of them.
  uint32_t reader = 0;
};

// Inline room for the uses of most tasks.
using Uses = absl::InlinedVector<Use, 3>;
struct Task;
using TaskList =
    absl::InlinedVector<std::shared_ptr<Task>, 2, PoolAllocator<std::shared_ptr<Task>>>;

// A launch of a client's kernel. Its arguments are bound when the code is compiled.
struct KernelArguments {
  std::shared_ptr<const v1::Operation> operation;
  std::vector<ops::Input> inputs;
  bool bound = false;
  session::ControlCharge control;  // for these members and the code
};

// One unit of scheduling: an operation on one device, or a host access: an upload or download,
// which takes part in the ordering but runs on no device. The tenant's transactions guard the
// members, except those that are constant after Enqueue. Each struct in it belongs to one part of
// the engine, which alone changes it.
struct Task : store::Access, std::enable_shared_from_this<Task> {
  explicit Task(std::shared_ptr<const Planned> planned = NoPlan()) : planned(std::move(planned)) {}

  const ops::Plan& plan() const { return planned->plan; }

  // --- set before Enqueue, constant afterwards ---
  uint64_t id = 0;
  TenantId tenant;
  std::shared_ptr<session::Session> session;  // may be null
  std::string label;
  std::shared_ptr<const Planned> planned;         // never null
  std::unique_ptr<KernelArguments> kernel;        // null: no kernel of a client
  std::shared_ptr<ProgramLaunch> program_launch;  // set: the task runs a whole program
  Uses uses;                                      // by slot of the plan: inputs, then outputs
  struct Options {
    bool host_access = false;
    int pinned_device = -1;            // -1: the scheduler's choice
    int priority = 0;                  // -10 to 10, among the tenant's tasks
    bool drop_other_replicas = false;  // a move: only the chosen device keeps the inputs
    bool reads_peers = false;  // small inputs may be read on their device: PeerReads::BlockFor
    SteadyTime deadline = SteadyTime::InfiniteFuture();
    bool of_job = false;   // the journal keeps its result until the job has ended
    bool piece = false;    // a part of another task, not counted in quotas and meters
    bool of_body = false;  // a task of a loop or branch, which on_done notifies
  };
  Options options;
  // Runs a loop or branch, which has no plan, when all earlier accesses have ended.
  std::shared_ptr<Conductor> bodies;
  struct Callbacks {
    // Called with each new state, and when a dispatched task has begun; after the transaction.
    std::unique_ptr<const std::function<void(TaskState)>> observer;
    // Called once when all accesses before a host access have ended; after the transaction.
    std::unique_ptr<const std::function<void()>> granted;
    // Called with the result after the transaction.
    absl::InlinedVector<absl::AnyInvocable<void(const absl::Status&)>, 1> on_done;
  };
  Callbacks callbacks;

  // --- changed by the parts of the engine ---
  TaskState state = TaskState::kWaiting;
  DeviceQueue* queue = nullptr;
  std::shared_ptr<Conductor> stream;  // set: kDispatched, on no device queue, computed in pieces

  // Changed by DependencyTracker and UnfinishedTasks.
  struct Order {
    uint64_t accepted = 0;        // in the order of acceptance
    size_t unfinished_index = 0;  // position in the list of tasks that have not ended
    TaskList pending;             // unfinished accesses that it waits for
    TaskList dependents;          // tasks that have this one in `pending`
    absl::Status lost_input;      // not OK: the writer of one of its inputs ended without running
  };
  Order order;

  // Changed by CodePreparer.
  struct Code {
    std::shared_ptr<const broker::CompiledModule> module;
    std::shared_ptr<const broker::CompiledModule> block_loops;  // set: it runs by blocks
    std::shared_ptr<const CompiledProgram> compiled;            // for the device's target
    bool compile_requested = false;
  };
  Code code;

  // Changed by TaskMemory, MemoryWaiters and Migration.
  struct Memory {
    int num_moves = 0;    // inputs whose move is in flight
    bool pinned = false;  // it has all its memory, and its buffers are pinned
    // Scratch memory on its device, without its buffers. The arenas count it while `pinned`.
    uint64_t scratch_bytes = 0;
    bool waits = false;  // in the memory list of its device queue
    uint64_t turn = 0;   // in the order of entry into memory queues
  };
  Memory memory;

  // Position in the lists of its device queue.
  struct Links {
    bool queued_ready = false;    // in `ready`
    bool being_prepared = false;  // in `preparing`, between these two
    Task *prepared_before = nullptr, *prepared_after = nullptr;
  };
  Links links;

  // The launch in the current worker. Changed by Dispatcher.
  struct Sent {
    // Sequences of its launches, zero fills included, and the worker's record.
    uint64_t first_sequence = 0, last_sequence = 0;
    uint64_t worker_record = 0;
    double estimate_seconds = 0;
    double expected_seconds = 0;  // estimate when it was dispatched
    absl::Status early_error;     // the error of a zero fill before its launch
    int num_deaths = 0;           // workers that died while it ran
  };
  Sent sent;

  // Changed by Cancellation.
  struct Cancel {
    absl::Status stop;            // not OK: the task is to end, with this status if it is running
    bool grace_begun = false;     // it is running: the worker is killed after the grace
    absl::Status recall;          // not OK: it ends with this status if its worker has not begun it
    bool recall_asked = false;    // the current worker was asked
    bool recall_refused = false;  // the current worker has begun it
    int num_recalls = 0;          // unanswered recalls of it: no dependent is dispatched
  };
  Cancel cancel;

  // Changed by JournalWriter.
  struct Journal {
    bool recorded = false;
    bool changed = false;
  };
  Journal journal;

  struct Timeline {
    SteadyTime submit_time;
    SteadyTime compile_start, compile_end;
    SteadyTime move_start, move_end;
    SteadyTime dispatch_time;
    SteadyTime begin_time;  // begin on the device, if known; unset: it has not begun
    SteadyTime end_time;
    double run_seconds = 0;
    int ran_on_device = -1;
  };
  Timeline timeline;

  // Text that the kernels of a task without a session printed; null: none.
  std::unique_ptr<PrintedText> printed;

  // The outcome. `result` is constant once `finished` is notified.
  absl::Status result;
  absl::Notification finished;
};

}  // namespace stride::engine
