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
#include "server/ops/plan.h"
#include "server/scheduler/plan_cache.h"
#include "server/scheduler/replay.h"
#include "server/session/catalogue.h"
#include "server/store/buffer.h"
#include "stride/v1/operation.pb.h"

namespace stride::scheduler {

struct Lane;
class TenantTransaction;

// What runs a task that is on no lane by others, which are its pieces.
class Conductor {
 public:
  virtual ~Conductor() = default;
  // Takes long. The caller has no transaction.
  virtual void Run() = 0;
  // Cancels what is in flight. The task ends soon after.
  virtual void Stop(TenantTransaction& transaction) = 0;
};

// kWaiting -> kPreparing -> kDispatched -> kDone. A worker's death, or a recall, takes kDispatched
// back to kWaiting.
enum class TaskState {
  kWaiting,     // for the accesses before it
  kPreparing,   // has a device; waits for code, a worker, memory, or inputs on their way
  kDispatched,  // in the worker's queue or running there; or, for a host access, granted
  kDone,
};

// A task whose worker dies while it runs is sent again until it was tried this often.
inline constexpr int kMaxTaskAttempts = 3;

// How a task uses a buffer.
struct Use {
  std::shared_ptr<store::Buffer> buffer;  // null: a scalar
  bool read = false;
  bool write = false;
  bool fresh = false;  // this task makes the buffer's whole content
  // The buffer is an input of the loop or branch that this task is a piece of, which stands in the
  // buffer's order in its place. It is read alone.
  bool held = false;
  // Where it stands among the buffer's readers, if it does: its task tells.
  uint32_t reader = 0;
};

// Most tasks have no more than these.
using Uses = absl::InlinedVector<Use, 3>;
struct Task;
using TaskList =
    absl::InlinedVector<std::shared_ptr<Task>, 2, PoolAllocator<std::shared_ptr<Task>>>;

// Of a client's kernel: what is known once its code is compiled is bound to these.
struct KernelArguments {
  std::shared_ptr<const v1::Operation> operation;
  std::vector<ops::Input> inputs;
  bool bound = false;
  session::ControlCharge control;  // of these and the code
};

// One unit of scheduling: an operation on one device, or the daemon's own access to an array (an
// upload, a download), which takes part in the ordering but runs nowhere. Members are guarded by
// the tenant's transactions, but for those that are set before Enqueue and const afterwards.
struct Task : store::Access, std::enable_shared_from_this<Task> {
  explicit Task(std::shared_ptr<const Planned> planned = NoPlan()) : planned(std::move(planned)) {}

  const ops::Plan& plan() const { return planned->plan; }

  // Set before Enqueue.
  uint64_t id = 0;
  TenantId tenant;
  std::shared_ptr<session::Session> session;  // may be null
  std::string label;
  bool host_access = false;
  std::shared_ptr<const Planned> planned;   // never null
  std::unique_ptr<KernelArguments> kernel;  // null: it launches none of a client's
  std::shared_ptr<Replay> replay;           // of a program that is one task
  Uses uses;                                // by slot of the plan: inputs, then outputs
  int pinned_device = -1;                   // -1: the scheduler's choice
  int priority = 0;                         // -10 to 10, among the tenant's
  bool drop_other_replicas = false;         // a move: the inputs stay on the chosen device only
  bool reads_peers = false;  // small inputs may be read where they lie: Scheduler::BlockFor
  SteadyTime deadline = SteadyTime::InfiniteFuture();
  bool of_job = false;   // its result is kept until the job has ended
  bool piece = false;    // of another task: no operation of its own to quotas and meters
  bool of_body = false;  // a piece of a loop or a branch, which hears of its end by on_done
  // Of a loop or a branch, which has no plan: has its turn when all before it have ended.
  std::shared_ptr<Conductor> bodies;
  // Told of every change, and when a dispatched task has begun; after the transaction.
  std::unique_ptr<const std::function<void(TaskState)>> observer;
  // Of a host access: called once when all earlier accesses ended, after the transaction.
  std::unique_ptr<const std::function<void()>> granted;

  // The scheduler's.
  TaskState state = TaskState::kWaiting;
  uint64_t order = 0;           // of acceptance
  size_t unfinished_index = 0;  // among all that have not ended
  TaskList pending;             // unfinished accesses that come first
  TaskList dependents;          // tasks that have this one in `pending`
  Lane* lane = nullptr;
  std::shared_ptr<const broker::CompiledModule> module;
  std::shared_ptr<const broker::CompiledModule> block_loops;  // set: it runs by blocks
  std::shared_ptr<const Replay::Ready> ready;                 // for the device's target
  bool compile_requested = false;
  bool queued_ready = false;    // stands in its lane's ready queue
  bool being_prepared = false;  // stands among those that its lane prepares, between these two
  Task *prepared_before = nullptr, *prepared_after = nullptr;
  int num_moves = 0;     // inputs on their way
  int num_deaths = 0;    // of workers that died while it ran
  bool holding = false;  // its buffers stay where they are, and it has all its memory
  // Work memory on its device, without its buffers: counted in Memory while it holds them.
  uint64_t scratch_bytes = 0;
  bool waits_memory = false;  // stands in its lane's memory queue
  uint64_t memory_turn = 0;   // in the order of coming to wait for it
  // Of its launches in the present worker, zero fills included; and that worker's record.
  uint64_t first_sequence = 0, last_sequence = 0;
  uint64_t worker_record = 0;
  absl::Status stop;            // not OK: it is to end, with this if it is running
  bool grace_begun = false;     // and is running: after the grace the present worker is killed
  absl::Status recall;          // not OK: what it is to end with if its worker has not begun it
  bool recall_asked = false;    // of the present worker
  bool recall_refused = false;  // the present worker has begun it
  int num_recalls =
      0;  // unanswered ones that would take it out: nothing new may follow it meanwhile
  absl::Status lost_input;  // not OK: what was to write one of its inputs ended without running
  double estimate_seconds = 0;
  double expected_seconds = 0;        // likewise, as known when it was dispatched
  absl::Status early_error;           // of a wire task before its own launch
  std::shared_ptr<Conductor> stream;  // kDispatched, on no lane: it is computed in pieces

  // The recorder's.
  bool recorded = false;
  bool record_changed = false;

  // Timeline.
  SteadyTime submit_time;
  SteadyTime compile_start, compile_end;
  SteadyTime move_start, move_end;
  SteadyTime dispatch_time;
  SteadyTime begin_time;  // on the device, as far as known; unset: it has not begun
  SteadyTime end_time;
  double run_seconds = 0;
  int ran_on_device = -1;

  // Text that its kernels printed, of a task without a session; null: none.
  std::unique_ptr<PrintedText> printed;

  // The outcome: `result` is written before `finished` is notified, never after.
  absl::Status result;
  absl::Notification finished;
  // Called with the result after the transaction.
  absl::InlinedVector<absl::AnyInvocable<void(const absl::Status&)>, 1> on_done;
};

}  // namespace stride::scheduler
