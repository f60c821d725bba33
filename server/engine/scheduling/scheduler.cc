#include "server/engine/scheduling/scheduler.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/core/for_each_batch.h"
#include "server/engine/persistence/durable_sink.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/scheduling/hazards.h"

namespace stride::engine {
namespace {

// Empty arenas kept warm for the next arrays of a queue: a first touch of fresh memory costs about
// a second a GiB.
constexpr uint64_t kKeepEmptyBytes = uint64_t{512} << 20;

// True if the task's client learns of its end only from the arrays that the task was to write. The
// client itself asked for a cancellation. The answer to a kernel launch reports the launch's error.
bool LosesWrites(const Task& task, const absl::Status& status) {
  if (task.session == nullptr || task.drop_other_replicas || absl::IsCancelled(status))
    return false;
  const bool is_told =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsUnimplemented(status);
  return task.kernel == nullptr || !is_told;
}

}  // namespace

Scheduler::Scheduler(Core* core)
    : core_(core),
      queues_(core),
      memory_(core, &queues_, this, this,
              [this](GlobalTransaction& transaction, const DeviceQueue& queue,
                     std::optional<int> device) {
                return starter_.GiveWay(transaction, device, &queue);
              }),
      out_of_core_(core, &queues_, &memory_, this, this, this),
      health_(core,
              {.changed = [this](GlobalTransaction& transaction,
                                 int device) { HealthChanged(transaction, device); },
               .give_way = [this](GlobalTransaction& transaction,
                                  int device) { return starter_.GiveWay(transaction, device); },
               .tried = [this](GlobalTransaction& transaction,
                               int device) { starter_.ProbeEnded(transaction, device); }}),
      starter_(core, &queues_, &health_, this),
      placer_(core, &health_),
      code_(core, this),
      slices_(core),
      deadlines_(core, this),
      cancellation_(core, this) {
  core->settle = [this](TenantTransaction& transaction) { Settle(transaction); };
}

absl::Status Scheduler::Enqueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                                const std::shared_ptr<Task>& after) {
  // Reading what accepted work made is part of that work.
  bool only_reads = task->host_access && std::none_of(task->uses.begin(), task->uses.end(),
                                                      [](const Use& use) { return use.write; });
  if (core_->draining && !only_reads && !task->piece) {
    return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DRAINING,
                    "the daemon is shutting down and takes no new work", absl::Seconds(1));
  }
  const int unfinished = num_unfinished(transaction, task->tenant);
  const int64_t limit = core_->accounts->MaxOperations(task->tenant);
  if (unfinished >= limit && !task->piece) {
    return QuotaExceeded(v1::ERROR_REASON_QUEUE_FULL, task->tenant.value,
                         "too many operations are queued; wait for some to end",
                         {.quota = "operations", .limit = limit, .used = unfinished, .asked = 1},
                         absl::Milliseconds(100));
  }
  AddUnfinished(transaction, task);
  task->submit_time = core_->Now();
  if (core_->durable_sink != nullptr && !task->piece)
    core_->durable_sink->Enqueued(transaction, *task);
  core_->journal_writer->Accepted(transaction, task);
  dependencies_.Enter(transaction, task, after);
  deadlines_.Watch(transaction, *task);
  Evaluate(transaction, task);
  return absl::OkStatus();
}

void Scheduler::Restore(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
  AddUnfinished(transaction, task);
  dependencies_.Enter(transaction, task);
  deadlines_.Watch(transaction, *task);
}

void Scheduler::Resume(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state == TaskState::kWaiting && !task->recall.ok()) {
    EndUnrun(transaction, task, task->recall);
  } else {
    Evaluate(transaction, task);
  }
}

void Scheduler::Evaluate(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  // A task in preparation ends at once if an input has an error; it need not wait for its code.
  bool undispatched = task->state == TaskState::kWaiting || task->state == TaskState::kPreparing;
  if (!undispatched) return;
  if (absl::Status error = FirstInputError(*task); !error.ok()) {
    EndUnrun(transaction, task, error);
    return;
  }
  if (task->state == TaskState::kPreparing) return;
  if (task->host_access) {
    if (!task->pending.empty() || memory_.copies().AwaitBeforeWrite(transaction, task)) return;
    SetState(transaction, *task, TaskState::kDispatched);
    Hold(transaction, *task);
    memory_.copies().ContentChanges(transaction, *task);
    if (task->granted != nullptr)
      transaction.Defer([granted = std::move(task->granted)] { (*granted)(); });
    return;
  }
  if (task->bodies != nullptr) {
    if (task->pending.empty()) BeginBodies(transaction, task);
    return;
  }
  const std::optional<DeviceQueue*> via = DependencyTracker::QueueToFollow(*task);
  if (!via.has_value()) return;
  if (*via != nullptr) {
    // A move must see its input's last content, not one on its way.
    const bool fits = !task->drop_other_replicas && (*via)->tenant == task->tenant &&
                      placer_.Fits(*task, (*via)->device);
    if (fits) Place(transaction, task, **via);
    return;
  }
  int device = placer_.Choose(transaction, *task);
  if (device < 0) {
    EndUnrun(transaction, task, placer_.NoDeviceFor(*task));
    return;
  }
  Place(transaction, task, QueueFor(transaction, task->tenant, device));
}

void Scheduler::Place(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                      DeviceQueue& queue) {
  placer_.Enter(transaction, *task, queue);
  SetState(transaction, *task, TaskState::kPreparing);
  Prepare(transaction, task);
}

void Scheduler::Unplace(TenantTransaction& transaction, Task& task) {
  LetGo(transaction, task);
  if (task.queue == nullptr) return;
  memory_.waiters().Leave(transaction, task);
  placer_.Leave(transaction, task);
}

// Tasks in a worker's queue stay there: they may still end, and their deadlines end them otherwise.
void Scheduler::HealthChanged(GlobalTransaction& transaction, int device) {
  if (health_.Serves(device)) return;
  queues_.ForEach(transaction, [&](DeviceQueue& queue) {
    if (queue.device != device) return;
    const std::vector<std::shared_ptr<Task>> tasks = queue.preparing.All();
    for (const auto& task : tasks) EvacuateUnhealthy(transaction, task);
  });
}

// Sends a task to another device, or ends it where no other can run it. A task whose inputs are in
// flight is evaluated again when they arrive.
void Scheduler::EvacuateUnhealthy(TenantTransaction& transaction,
                                  const std::shared_ptr<Task>& task) {
  if (task->state != TaskState::kPreparing || task->num_moves > 0) return;
  TakeBack(transaction, task);
  Evaluate(transaction, task);
}

void Scheduler::Finish(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                       absl::Status status) {
  if (task->state == TaskState::kDone) return;
  Complete(transaction, task, std::move(status));
}

// The error of a task that ends early, and its texts: before it ran, during an access from the
// host, and while it ran.
struct Scheduler::EarlyEnd {
  absl::StatusCode code;
  v1::ErrorReason reason;
  std::string_view unrun, access, running;

  absl::Status With(std::string_view text) const { return MakeError(code, reason, text); }
};

void Scheduler::Cancel(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  EndEarly(transaction, task,
           {.code = absl::StatusCode::kCancelled,
            .reason = v1::ERROR_REASON_CANCELLED,
            .unrun = "the operation was cancelled before it ran",
            .access = "the operation was cancelled before it ended",
            .running = "the operation was cancelled while it ran"});
}

void Scheduler::DeadlinePassed(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  EndEarly(transaction, task,
           {.code = absl::StatusCode::kDeadlineExceeded,
            .reason = v1::ERROR_REASON_DEADLINE,
            .unrun = "the deadline passed before the operation ran",
            .access = "the deadline passed before the operation ended",
            .running = "the deadline passed while the operation ran"});
}

void Scheduler::EndEarly(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         const EarlyEnd& why) {
  if (task->state == TaskState::kDone) return;
  if (task->host_access) {
    Complete(transaction, task, why.With(why.access));
  } else if (task->stream != nullptr) {
    StopStream(transaction, task, why.With(why.running));
  } else if (task->state == TaskState::kDispatched) {
    cancellation_.Stop(transaction, task, why.With(why.unrun), why.With(why.running));
  } else {
    EndUnrun(transaction, task, why.With(why.unrun));
  }
}

void Scheduler::CancelAll(const TenantId& tenant, absl::Span<const std::shared_ptr<Task>> tasks) {
  ForEachBatch(*core_, PartitionOf(tenant), [&](TenantTransaction& transaction) {
    if (tasks.empty()) return Step::kEnd;
    const std::shared_ptr<Task>& task = tasks.front();
    if (task != nullptr) Cancel(transaction, task);
    tasks.remove_prefix(1);
    return Step::kDone;
  });
}

void Scheduler::EndUnrun(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         absl::Status status) {
  if (LosesWrites(*task, status)) {
    for (const Use& use : task->uses) {
      if (use.buffer != nullptr && use.write && !use.fresh && !use.held)
        use.buffer->LoseWrite(*task->session->name, status);
    }
  }
  for (const auto& dependent : task->dependents) {
    if (!dependent->lost_input.ok() || !NeedsOutputOf(*dependent, *task)) continue;
    dependent->lost_input = status;
    core_->journal_writer->Changed(transaction, *dependent);
  }
  Complete(transaction, task, std::move(status));
}

void Scheduler::Complete(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         absl::Status status) {
  bool was_dispatched = task->state == TaskState::kDispatched;
  if (DeviceQueue* queue = task->queue) {
    DeviceChange& account = transaction.ChangeOf(queue->device);
    if (!task->piece) ++(status.ok() ? account.succeeded : account.failed);
    task->ran_on_device = queue->device;
  }
  if (!task->host_access && !task->piece)
    core_->accounts->AddOperation(task->tenant, task->ran_on_device, status.ok());
  Unplace(transaction, *task);
  if (!status.ok()) {
    for (const Use& use : task->uses) {
      // Arrays that the task was to write in place stay valid if it never ran. New ones have no
      // content.
      bool spoiled = use.write && !use.held && (use.fresh || was_dispatched);
      if (use.buffer != nullptr && spoiled) use.buffer->Spoil(status);
    }
  }
  task->end_time = core_->Now();
  task->result = std::move(status);
  dependencies_.Leave(transaction, *task);
  if (core_->durable_sink != nullptr && !task->piece)
    core_->durable_sink->Ended(transaction, *task, was_dispatched);
  task->uses.clear();  // releases the buffers
  task->granted = nullptr;
  task->bodies = nullptr;
  RemoveUnfinished(transaction, *task);
  SetState(transaction, *task, TaskState::kDone);
  transaction.Defer([task] {
    task->finished.Notify();
    // The list is final: the task is kDone.
    for (auto& callback : task->on_done) callback(task->result);
    task->on_done.clear();
  });
  if (task->piece && !task->of_body) transaction.WakeWaiters();  // OutOfCoreExecutor waits
}

void Scheduler::Settle(TenantTransaction& transaction) {
  TenantTransaction::Work& work = transaction.work();
  while (!work.empty()) {
    if (!work.freed.empty()) {
      // An evaluated task may free more tasks, which are appended.
      for (size_t i = 0; i < work.freed.size(); ++i) {
        const std::shared_ptr<Task> next = std::move(work.freed[i]);
        Evaluate(transaction, next);
      }
      work.freed.clear();
    } else if (!work.pumped.empty()) {
      DeviceQueue& queue = *work.pumped.front();
      work.pumped.erase(work.pumped.begin());
      PumpNow(transaction, queue);
    } else {
      const int device = work.devices.front();
      work.devices.erase(work.devices.begin());
      slices_.Begin(transaction, device);
    }
  }
}

// To a successor it has begun, in no worker that it knows.
void Scheduler::BeginBodies(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  task->dispatch_time = core_->Now();
  task->worker_record = 0;
  task->first_sequence = task->last_sequence = 1;
  task->stream = task->bodies;
  SetState(transaction, *task, TaskState::kDispatched);
  core_->streams.Run([conductor = task->stream] { conductor->Run(); });
}

void Scheduler::StopStream(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                           absl::Status status) {
  if (!task->stop.ok()) return;
  task->stop = std::move(status);
  task->stream->Stop(transaction);
}

void Scheduler::BodiesEnded(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                            absl::Status status) {
  if (!task->stop.ok() && !status.ok()) status = task->stop;
  task->stream = nullptr;
  if (task->ran_on_device >= 0 && !task->piece) {
    DeviceChange& account = transaction.ChangeOf(task->ran_on_device);
    ++(status.ok() ? account.succeeded : account.failed);
  }
  Complete(transaction, task, std::move(status));
}

void Scheduler::SetState(TenantTransaction& transaction, Task& task, TaskState state) {
  task.state = state;
  if (state != TaskState::kPreparing) core_->journal_writer->Changed(transaction, task);
  if (task.observer != nullptr)
    transaction.Defer([observer = *task.observer, state] { observer(state); });
}

int Scheduler::num_unfinished(TenantTransaction& transaction, const TenantId& tenant) const {
  const std::map<TenantId, int>& unfinished = Mine(transaction, tenant).unfinished;
  auto it = unfinished.find(tenant);
  return it == unfinished.end() ? 0 : it->second;
}

void Scheduler::AddUnfinished(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  Partition& partition = Mine(transaction, task->tenant);
  ++partition.unfinished[task->tenant];
  task->unfinished_index = partition.unfinished_tasks.size();
  partition.unfinished_tasks.push_back(task);
  NoteUnfinished(partition);
}

void Scheduler::RemoveUnfinished(TenantTransaction& transaction, Task& task) {
  deadlines_.Forget(transaction, task);
  Partition& partition = Mine(transaction, task.tenant);
  auto of_tenant = partition.unfinished.find(task.tenant);
  if (--of_tenant->second == 0) partition.unfinished.erase(of_tenant);
  std::vector<std::shared_ptr<Task>>& tasks = partition.unfinished_tasks;
  std::swap(tasks[task.unfinished_index], tasks.back());
  tasks[task.unfinished_index]->unfinished_index = task.unfinished_index;
  tasks.pop_back();
  NoteUnfinished(partition);
  if (core_->draining && tasks.empty()) transaction.WakeWaiters();
}

void Scheduler::NoteUnfinished(Partition& partition) {
  partition.num_unfinished.store(static_cast<int>(partition.unfinished_tasks.size()),
                                 std::memory_order_relaxed);
}

int Scheduler::num_unfinished() const {
  int count = 0;
  for (const Partition& partition : partitions_.Unguarded())
    count += partition.num_unfinished.load(std::memory_order_relaxed);
  return count;
}

// Threads that wait evaluate their conditions when the transaction ends.
void Scheduler::BeginEnd(GlobalTransaction& transaction) { core_->ending = true; }

void Scheduler::DropUnfinished() {
  deadlines_.Clear();
  std::vector<std::shared_ptr<Task>> tasks;
  for (Partition& partition : partitions_.Unguarded()) {
    std::move(partition.unfinished_tasks.begin(), partition.unfinished_tasks.end(),
              std::back_inserter(tasks));
    partition.unfinished_tasks.clear();
  }
  for (const auto& task : tasks) {
    for (const Use& use : task->uses) {
      if (use.buffer == nullptr) continue;
      use.buffer->writer = nullptr;
      use.buffer->readers.clear();
    }
    task->uses.clear();
    task->pending.clear();
    task->dependents.clear();
    task->granted = nullptr;
    task->observer = nullptr;
    task->on_done.clear();
    task->stream = nullptr;
    task->bodies = nullptr;
  }
}

void Scheduler::MeasureWorkers() {
  starter_.Measure([this](GlobalTransaction& transaction, int place) {
    return WorkerStarter::PlaceUse{memory_.arenas().arena_bytes(transaction, place),
                                   memory_.arenas().used_bytes(transaction, place)};
  });
}

void Scheduler::WorkerStarted(GlobalTransaction& transaction, DeviceQueue& queue) {
  PrepareAll(transaction, queue);
  transaction.work().Pump(queue);
}

void Scheduler::WorkerNotStarted(GlobalTransaction& transaction, DeviceQueue& queue,
                                 const absl::Status& status) {
  const std::vector<std::shared_ptr<Task>> tasks = queue.preparing.All();
  for (const auto& task : tasks) {
    if (task->state == TaskState::kPreparing) EndUnrun(transaction, task, status);
  }
}

// Its empty arenas are released.
void Scheduler::WorkerEnds(GlobalTransaction& transaction, DeviceQueue& queue) {
  memory_.arenas().Trim(transaction, queue, 0);
}

void Scheduler::WorkerGone(GlobalTransaction& transaction) { memory_.Changed(transaction); }

void Scheduler::Housekeep(GlobalTransaction& transaction) {
  memory_.Housekeep(transaction);
  queues_.ForEach(transaction, [&](DeviceQueue& queue) {
    bool idle = queue.preparing.empty() && queue.in_flight.empty() && queue.num_copies == 0 &&
                !queue.growing;
    if (queue.worker != nullptr) queues_.Charge(transaction, queue, 0);
    bool keep = !idle || queue.last_used + core_->options.keep_empty_time > core_->Now();
    memory_.arenas().Trim(transaction, queue, keep ? kKeepEmptyBytes : 0);
    ForgetPrograms(queue);
  });
  starter_.Tend(transaction);
}

}  // namespace stride::engine
