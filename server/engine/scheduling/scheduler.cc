#include "server/engine/scheduling/scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/base/error.h"
#include "server/engine/memory/lent_for_reading.h"
#include "server/engine/persistence/durable_sink.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/scheduling/hazards.h"
#include "server/engine/scheduling/task_state.h"

namespace stride::engine {
namespace {

// Empty arenas kept warm for the next arrays of a queue: a first touch of fresh memory costs about
// a second a GiB.
constexpr uint64_t kKeepEmptyBytes = uint64_t{512} << 20;

// True if the task's client learns of its end only from the arrays that the task was to write. The
// client itself asked for a cancellation. The answer to a kernel launch reports the launch's error.
bool LosesWrites(const Task& task, const absl::Status& status) {
  if (task.session == nullptr || task.options.drop_other_replicas || absl::IsCancelled(status))
    return false;
  const bool is_reported =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsUnimplemented(status);
  return task.kernel == nullptr || !is_reported;
}

}  // namespace

Scheduler::Scheduler(Core* core)
    : core_(core),
      queues_(core),
      unfinished_(core),
      cancellation_(core, this),
      deadlines_(core, &cancellation_),
      conducted_(core, this),
      slices_(core),
      changes_(core,
               {.queues = &queues_,
                .memory = &memory_,
                .task_memory = &task_memory_,
                .health = &health_,
                .starter = &starter_,
                .slices = &slices_},
               this),
      results_(core,
               {.queues = &queues_,
                .memory = &memory_,
                .task_memory = &task_memory_,
                .health = &health_,
                .placer = &placer_,
                .slices = &slices_,
                .cancellation = &cancellation_},
               this),
      starter_(core, &queues_, &health_,
               {.events = &changes_, .reports = &results_, .cancels = &cancellation_}),
      health_(core,
              {.changed = [this](GlobalTransaction& transaction,
                                 int device) { changes_.HealthChanged(transaction, device); },
               .give_way = [this](GlobalTransaction& transaction,
                                  int device) { return starter_.GiveWay(transaction, device); },
               .tried = [this](GlobalTransaction& transaction,
                               int device) { starter_.ProbeEnded(transaction, device); }}),
      placer_(core, &health_),
      memory_(core, &queues_, &starter_, this,
              [this](GlobalTransaction& transaction, const DeviceQueue& queue,
                     std::optional<int> device) {
                return starter_.GiveWay(transaction, device, &queue);
              }),
      out_of_core_(core, &queues_, &memory_, &starter_, this, this, &cancellation_),
      task_memory_(core, &memory_, &out_of_core_, this),
      code_(core, this),
      loader_(core),
      dispatcher_(core, &memory_, &placer_, &slices_, &cancellation_, &loader_, this) {
  core->settle = [this](TenantTransaction& transaction) { Settle(transaction); };
}

absl::Status Scheduler::Enqueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                                const std::shared_ptr<Task>& after) {
  // Reading what accepted work made is part of that work.
  bool only_reads =
      task->options.host_access &&
      std::none_of(task->uses.begin(), task->uses.end(), [](const Use& use) { return use.write; });
  if (core_->draining && !only_reads && !task->options.piece) {
    return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DRAINING,
                    "the daemon is shutting down and takes no new work", absl::Seconds(1));
  }
  const int unfinished = unfinished_.Count(transaction, task->tenant);
  const int64_t limit = core_->accounts->MaxOperations(task->tenant);
  if (unfinished >= limit && !task->options.piece) {
    return QuotaExceeded(v1::ERROR_REASON_QUEUE_FULL, task->tenant.value,
                         "too many operations are queued; wait for some to end",
                         {.quota = "operations", .limit = limit, .used = unfinished, .asked = 1},
                         absl::Milliseconds(100));
  }
  unfinished_.Add(transaction, task);
  task->timeline.submit_time = core_->Now();
  if (core_->durable_sink != nullptr && !task->options.piece)
    core_->durable_sink->Enqueued(transaction, *task);
  core_->journal_writer->Accepted(transaction, task);
  dependencies_.Enter(transaction, task, after);
  deadlines_.Watch(transaction, *task);
  Evaluate(transaction, task);
  return absl::OkStatus();
}

void Scheduler::Restore(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
  unfinished_.Add(transaction, task);
  dependencies_.Enter(transaction, task);
  deadlines_.Watch(transaction, *task);
}

void Scheduler::Resume(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state == TaskState::kWaiting && !task->cancel.recall.ok()) {
    EndUnrun(transaction, task, task->cancel.recall);
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
  if (task->options.host_access) {
    if (!task->order.pending.empty() || memory_.copies().AwaitBeforeWrite(transaction, task))
      return;
    SetState(*core_, transaction, *task, TaskState::kDispatched);
    task_memory_.Pin(transaction, *task);
    memory_.copies().ContentChanges(transaction, *task);
    if (task->callbacks.granted != nullptr)
      transaction.Defer([granted = std::move(task->callbacks.granted)] { (*granted)(); });
    return;
  }
  if (task->bodies != nullptr) {
    if (task->order.pending.empty()) conducted_.Begin(transaction, task);
    return;
  }
  const std::optional<DeviceQueue*> via = DependencyTracker::QueueToFollow(*task);
  if (!via.has_value()) return;
  if (*via != nullptr) {
    // A move must see its input's last content, not one on its way.
    const bool fits = !task->options.drop_other_replicas && (*via)->tenant == task->tenant &&
                      placer_.Fits(*task, (*via)->device);
    if (fits) Place(transaction, task, **via);
    return;
  }
  int device = placer_.Choose(transaction, *task);
  if (device < 0) {
    EndUnrun(transaction, task, placer_.NoDeviceFor(*task));
    return;
  }
  Place(transaction, task, queues_.Get(transaction, task->tenant, device));
}

void Scheduler::Place(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                      DeviceQueue& queue) {
  placer_.Enter(transaction, *task, queue);
  SetState(*core_, transaction, *task, TaskState::kPreparing);
  Prepare(transaction, task);
}

void Scheduler::Prepare(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state != TaskState::kPreparing) return;
  DeviceQueue& queue = *task->queue;
  if (!health_.Serves(queue.device)) {
    // The task goes to another device, or ends where no other can run it. A task whose inputs are
    // in flight is prepared again when they arrive.
    if (task->memory.num_moves > 0) return;
    Requeue(transaction, task);
    Evaluate(transaction, task);
    return;
  }
  if (task->links.queued_ready || !code_.Have(transaction, task)) return;
  if (TaskMemory::WritesLoan(*task)) {
    EndUnrun(transaction, task, LentForReading());
    return;
  }
  if (queue.worker == nullptr) {
    starter_.Request(transaction, queue);
    return;
  }
  if (task_memory_.Take(transaction, task)) dispatcher_.Add(transaction, task);
}

void Scheduler::Unplace(TenantTransaction& transaction, Task& task, TaskState next) {
  task_memory_.Release(transaction, task);
  placer_.Leave(transaction, task);
  SetState(*core_, transaction, task, next);
}

// The task is not in its worker's queue any more, and nothing of it runs there.
void Scheduler::Requeue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  TaskMemory::DropFresh(task->uses);
  LeaveQueue(transaction, task);
}

void Scheduler::LeaveQueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  task->timeline.run_seconds = 0;
  task->timeline.begin_time = SteadyTime();
  task->cancel.recall_asked = task->cancel.recall_refused = task->cancel.grace_begun = false;
  task->cancel.num_recalls = 0;
  Unplace(transaction, *task, TaskState::kWaiting);
  // Dependents prepared to follow it there wait for it again: no input exists yet that could be
  // moved.
  for (const auto& dependent : task->order.dependents) {
    if (dependent->state == TaskState::kPreparing) Requeue(transaction, dependent);
  }
}

void Scheduler::EndUnrun(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         absl::Status status) {
  if (LosesWrites(*task, status)) {
    for (const Use& use : task->uses) {
      if (use.buffer != nullptr && use.write && !use.fresh && !use.held)
        use.buffer->LoseWrite(*task->session->name, status);
    }
  }
  for (const auto& dependent : task->order.dependents) {
    if (!dependent->order.lost_input.ok() || !NeedsOutputOf(*dependent, *task)) continue;
    dependent->order.lost_input = status;
    core_->journal_writer->Changed(transaction, *dependent);
  }
  Complete(transaction, task, std::move(status));
}

void Scheduler::Complete(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         absl::Status status) {
  if (task->state == TaskState::kDone) return;
  bool was_dispatched = task->state == TaskState::kDispatched;
  if (DeviceQueue* queue = task->queue) {
    DeviceChange& account = transaction.ChangeOf(queue->device);
    if (!task->options.piece) ++(status.ok() ? account.succeeded : account.failed);
    task->timeline.ran_on_device = queue->device;
  }
  if (!task->options.host_access && !task->options.piece)
    core_->accounts->AddOperation(task->tenant, task->timeline.ran_on_device, status.ok());
  task_memory_.Release(transaction, *task);
  placer_.Leave(transaction, *task);
  if (!status.ok()) {
    for (const Use& use : task->uses) {
      // Arrays that the task was to write in place stay valid if it never ran. New ones have no
      // content.
      bool spoiled = use.write && !use.held && (use.fresh || was_dispatched);
      if (use.buffer != nullptr && spoiled) use.buffer->Spoil(status);
    }
  }
  task->timeline.end_time = core_->Now();
  task->result = std::move(status);
  dependencies_.Leave(transaction, *task);
  if (core_->durable_sink != nullptr && !task->options.piece)
    core_->durable_sink->Ended(transaction, *task, was_dispatched);
  task->uses.clear();  // releases the buffers
  task->callbacks.granted = nullptr;
  task->bodies = nullptr;
  deadlines_.Forget(transaction, *task);
  unfinished_.Remove(transaction, *task);
  SetState(*core_, transaction, *task, TaskState::kDone);
  transaction.Defer([task] {
    task->finished.Notify();
    // The list is final: the task is kDone.
    for (auto& callback : task->callbacks.on_done) callback(task->result);
    task->callbacks.on_done.clear();
  });
  if (task->options.piece && !task->options.of_body)
    transaction.WakeWaiters();  // OutOfCoreExecutor waits
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
      dispatcher_.Pump(transaction, queue);
    } else {
      const int device = work.devices.front();
      work.devices.erase(work.devices.begin());
      slices_.Begin(transaction, device);
    }
  }
}

void Scheduler::Housekeep(GlobalTransaction& transaction) {
  memory_.Housekeep(transaction);
  queues_.ForEach(transaction, [&](DeviceQueue& queue) {
    bool idle = queue.preparing.empty() && queue.sending.in_flight.empty() &&
                queue.num_copies == 0 && !queue.arenas.growing;
    if (queue.worker != nullptr) queues_.Charge(transaction, queue, 0);
    bool keep = !idle || queue.last_used + core_->options.keep_empty_time > core_->Now();
    memory_.arenas().Trim(transaction, queue, keep ? kKeepEmptyBytes : 0);
    loader_.Unload(queue);
  });
  starter_.Tend(transaction);
}

}  // namespace stride::engine
