#include "server/engine/scheduling/dispatcher.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "server/base/crash_point.h"
#include "server/base/error.h"
#include "server/base/system_error.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/scheduling/dependency_tracker.h"
#include "server/engine/scheduling/hazards.h"
#include "server/engine/scheduling/task_state.h"
#include "server/ops/bind.h"
#include "server/wire/status_page.h"

namespace stride::engine {
namespace {

using wire::AtOrBefore;

// The first task in flight begins within microseconds, or after the worker has loaded its module.
constexpr absl::Duration kStartPoll = absl::Milliseconds(2);
// Tasks in one worker's queue: enough that it never waits for us, few enough that most can still
// go to another device.
constexpr size_t kMaxInFlight = 256;
// With so many there, some of them short, the next answer comes before the worker has nothing to
// do.
constexpr size_t kBusyInFlight = 8;
constexpr size_t kFullPacket = 32;            // tasks that are worth a packet of their own
constexpr size_t kMaxSubmitBytes = 64 << 10;  // a packet has 128 KiB
constexpr size_t kMaxTaskBytes = 56 << 10;

// Calls `take` for each output buffer that is cleared before the task's own launch.
template <typename Take>
void ForEachFill(const Task& task, Take take) {
  const size_t num_inputs = task.uses.size() - task.plan().outputs.size();
  for (int output : task.plan().zeroed_outputs) {
    const store::Buffer& buffer = *task.uses[num_inputs + output].buffer;
    if (buffer.size > 0) take(buffer);
  }
}

ops::Rebinder& RebinderFor(const std::shared_ptr<const Planned>& planned, DeviceQueue& queue) {
  DeviceQueue::Bound& bound =
      queue.sending.bound[absl::HashOf(planned.get()) % DeviceQueue::kNumBound];
  if (bound.planned != planned) {
    bound.rebinder.Use(planned->plan.task);
    // One that this task alone has does not come again, and may hold a client's source.
    bound.planned = planned.use_count() > 1 ? planned : nullptr;
  }
  return bound.rebinder;
}

}  // namespace

void Dispatcher::Add(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  DeviceQueue& queue = *task->queue;
  task->links.queued_ready = true;
  // Ready tasks are independent of each other, so the queue is ordered by priority.
  auto less = [](const auto& a, const auto& b) {
    return a->options.priority > b->options.priority;
  };
  auto place = std::upper_bound(queue.sending.ready.begin(), queue.sending.ready.end(), task, less);
  if (place == queue.sending.ready.end()) {
    queue.sending.ready.push_back(task);  // insert into an empty deque would allocate at its front
  } else {
    queue.sending.ready.insert(place, task);
  }
  PumpSoon(transaction, queue);
}

// Pumps, unless the worker is busy and what is ready may wait for its next answer, or for the rest
// of a batch, to travel together: a packet costs more than a small operation.
void Dispatcher::PumpSoon(TenantTransaction& transaction, DeviceQueue& queue) {
  if (queue.sending.ready.size() < kFullPacket) {
    if (queue.sending.in_flight.size() >= kBusyInFlight) return;
    if (transaction.is_batch() && !queue.sending.in_flight.empty()) {
      transaction.HoldUntilEndOfBatch(queue);
      return;
    }
  }
  transaction.work().Pump(queue);
}

void Dispatcher::FlushBatch(TenantTransaction& transaction) {
  for (DeviceQueue* queue : transaction.EndBatch()) PumpSoon(transaction, *queue);
}

void Dispatcher::Pump(TenantTransaction& transaction, DeviceQueue& queue) {
  slices_->NoteDemand(queue);
  while (SendPacket(transaction, queue)) {
  }
  slices_->NoteDemand(queue);
  NoteStart(transaction, queue);
  transaction.work().GiveTurns(queue.device);
}

// Reads on the status page whether the first task in flight has begun, and notifies its observer.
// Everything before it has been reported, so it begins as soon as the worker, or on a GPU the
// stream, reaches it.
void Dispatcher::NoteStart(TenantTransaction& transaction, DeviceQueue& queue) {
  cancellation_->BeginGrace(queue);
  if (queue.worker == nullptr || queue.sending.in_flight.empty()) return;
  const DeviceQueue::InFlight& first = queue.sending.in_flight.front();
  Task* task = first.task.get();
  if (task == nullptr || task->callbacks.observer == nullptr ||
      task->timeline.begin_time != SteadyTime())
    return;
  if (AtOrBefore(first.sequence, queue.worker->progress().started_sequence)) {
    task->timeline.begin_time = core_->Now();
    transaction.Defer([observer = *task->callbacks.observer] { observer(TaskState::kDispatched); });
    return;
  }
  if (std::exchange(queue.sending.watching_start, true)) return;
  core_->timer.At(core_->Now() + kStartPoll, [this, queue = &queue] {
    TenantTransaction transaction(*core_, queue->tenant);
    queue->sending.watching_start = false;
    NoteStart(transaction, *queue);
  });
}

// Whether the queue's first ready task may be sent now. False: it has left the queue or has ended.
bool Dispatcher::CanSend(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         DeviceQueue& queue) {
  if (absl::Status error = FirstInputError(*task); !error.ok()) {
    events_->EndUnrun(transaction, task, error);
    return false;
  }
  if (!DependencyTracker::MayFollowIn(queue, *task)) {
    events_->Unplace(transaction, *task, TaskState::kWaiting);
    return false;
  }
  if (task->options.reads_peers && !memory_->peers().HasBlocks(*task, queue)) {
    events_->Unplace(transaction, *task, TaskState::kWaiting);
    events_->Evaluate(transaction, task);
    return false;
  }
  if (task->plan().task.kind_case() == wire::Task::KIND_NOT_SET) {
    memory_->copies().ContentChanges(transaction, *task);
    for (const Use& use : task->uses) use.buffer->KeepOnly(queue.device);
    events_->Complete(transaction, task, absl::OkStatus());
    return false;
  }
  return true;
}

// Fills and sends one packet. True: there may be more to send.
bool Dispatcher::SendPacket(TenantTransaction& transaction, DeviceQueue& queue) {
  if (queue.sending.ready.empty() || queue.start.yields()) return false;
  queue.sending.packet.Clear();
  double budget = slices_->Budget(queue);
  while (!queue.sending.ready.empty() && queue.sending.in_flight.size() < kMaxInFlight &&
         queue.worker != nullptr && queue.sending.packet.bytes().size() < kMaxSubmitBytes) {
    std::shared_ptr<Task> task = queue.sending.ready.front();
    if (!CanSend(transaction, task, queue)) continue;
    if (budget <= 0) break;
    const wire::Task& bound = Bind(*task, queue);
    const size_t size = bound.ByteSizeLong();
    if (size > kMaxTaskBytes) {
      events_->EndUnrun(transaction, task,
                        InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "",
                                     "the operation is too large for one launch; split it"));
      continue;
    }
    // The exact estimate matters only while other queues wait.
    task->sent.expected_seconds = std::isinf(budget)
                                      ? task->sent.estimate_seconds
                                      : placer_->ExpectedSeconds(transaction, *task, queue);
    budget -= task->sent.expected_seconds;
    absl::Status status = MapArenas(*task, queue);
    if (!IsLack(status)) status = code_->Load(*task, queue);
    if (IsLack(status)) {
      events_->EndUnrun(transaction, task, status);
      continue;
    }
    AddToPacket(transaction, task, queue, bound, size);
    // Dependents on this queue may go into the same packet.
    const TaskList dependents = task->order.dependents;
    for (const auto& dependent : dependents) events_->Evaluate(transaction, dependent);
  }
  if (queue.sending.packet.empty()) return false;
  core_->journal_writer->Commit(transaction);  // a successor must know what may have begun
  STRIDE_CRASH_POINT("scheduler.before_submit");
  // A worker that is gone answers UNAVAILABLE; the report of its death takes these tasks back.
  if (transaction.is_batch()) {  // the batch may be long, and the worker has nothing to do
    queue.worker->Submit(queue.sending.packet).IgnoreError();
    STRIDE_CRASH_POINT("scheduler.after_submit");
  } else {
    queue.worker->SubmitLater(queue.sending.packet).IgnoreError();
    transaction.FlushLater(queue.worker);
  }
  return true;
}

// The task as it is to be sent now, after its zero fills. Valid until the queue's next one.
const wire::Task& Dispatcher::Bind(const Task& task, DeviceQueue& queue) const {
  absl::InlinedVector<ops::Location, 8> slots;
  slots.reserve(task.uses.size());
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr) {
      slots.push_back({});
      continue;
    }
    const store::Allocation& replica = *memory_->peers().BlockFor(task, use, queue);
    slots.push_back({replica.arena->id, replica.offset});
  }
  wire::Task* bound = RebinderFor(task.planned, queue).Bind(slots);
  if (task.code.module != nullptr) {
    ops::SetModule(bound, task.code.module->id);
    if (task.plan().code.has_value())
      SetByBlocks(bound, task.code.block_loops.get(), *task.plan().code);
  }
  bound->set_label(task.label);
  uint64_t sequence = queue.sending.next_sequence;
  ForEachFill(task, [&](const store::Buffer&) { ++sequence; });
  bound->set_sequence(sequence);
  return *bound;
}

// `size`: the result of the last ByteSizeLong of `bound`.
void Dispatcher::AddToPacket(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                             DeviceQueue& queue, const wire::Task& bound, size_t size) {
  task->sent.worker_record = queue.worker_record;
  task->sent.first_sequence = queue.sending.next_sequence;
  ForEachFill(*task, [&](const store::Buffer& buffer) {
    const store::Allocation& replica = buffer.replicas.at(queue.device);
    wire::Task fill;
    fill.set_sequence(queue.sending.next_sequence++);
    fill.mutable_zero_fill()->set_arena(replica.arena->id);
    fill.mutable_zero_fill()->set_offset(replica.offset);
    fill.mutable_zero_fill()->set_size(buffer.size);
    queue.sending.packet.Add(fill);
    queue.sending.in_flight.push_back({fill.sequence(), task, false});
  });
  queue.sending.packet.Add(bound, size);
  queue.sending.in_flight.push_back({queue.sending.next_sequence++, task, true});
  task->sent.last_sequence = queue.sending.next_sequence - 1;

  queue.preparing.Remove(*task);
  auto& ready = queue.sending.ready;
  ready.pop_front();
  task->links.queued_ready = false;
  memory_->copies().ContentChanges(transaction, *task);
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || !use.write) continue;
    use.buffer->KeepOnly(queue.device);
    ++use.buffer->num_writes;
  }
  task->timeline.dispatch_time = core_->Now();
  task->sent.early_error = absl::OkStatus();
  SetState(*core_, transaction, *task, TaskState::kDispatched);
}

// Maps the arenas of the task's buffers into the worker.
absl::Status Dispatcher::MapArenas(const Task& task, DeviceQueue& queue) {
  const store::Arena* last = nullptr;
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr) continue;
    const std::shared_ptr<store::Arena>& arena = memory_->peers().BlockFor(task, use, queue)->arena;
    if (std::exchange(last, arena.get()) == arena.get()) continue;
    const bool peer = use.buffer->replicas.count(queue.device) == 0;
    if (absl::Status status = MapArena(queue, arena, peer); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stride::engine
