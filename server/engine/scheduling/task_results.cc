#include "server/engine/scheduling/task_results.h"

#include <algorithm>
#include <utility>

#include "server/base/crash_point.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/core/argument_text.h"
#include "server/engine/scheduling/code_loader.h"
#include "server/engine/scheduling/hazards.h"
#include "server/wire/status.h"

namespace stride::engine {
namespace {

// The status of a launch of the task, with the worker's error for its code if there is one.
absl::Status StatusOf(const Task& task, const DeviceQueue& queue, const wire::Status& status) {
  if (status.code() == 0) return absl::OkStatus();
  absl::Status cause = CodeLoader::ErrorOf(task, queue);
  if (cause.ok()) cause = wire::ToStatus(status);
  if (wire::ReasonFor(cause.code()) == v1::ERROR_REASON_KERNEL_FAULT)
    return WithArguments(cause, task);
  absl::string_view text = cause.message();
  const bool linear_algebra = ReasonOf(cause) == v1::ERROR_REASON_LINEAR_ALGEBRA;
  const v1::ErrorReason reason =
      linear_algebra ? v1::ERROR_REASON_LINEAR_ALGEBRA : wire::ReasonFor(cause.code());
  return MakeError(cause.code(), reason, {text.data(), text.size()}, {{"operation", task.label}});
}

}  // namespace

void TaskResults::Printed(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
                          std::string_view text, uint64_t dropped_lines) {
  for (const DeviceQueue::InFlight& entry : queue.sending.in_flight) {
    if (entry.sequence < sequence) continue;
    const std::shared_ptr<Task>& task = entry.launched();
    if (entry.sequence > sequence || task == nullptr) return;
    if (task->session != nullptr) {
      task->session->printed.Append(text, dropped_lines, task->session->control.account());
    } else {
      if (task->printed == nullptr) task->printed = std::make_unique<PrintedText>();
      task->printed->Append(text, dropped_lines, kMaxPrintedBytes);
    }
    return;
  }
}

void TaskResults::TasksDone(TenantTransaction& transaction, DeviceQueue& queue,
                            absl::Span<const wire::TaskResult> results) {
  STRIDE_CRASH_POINT("scheduler.before_completion");
  const FrozenClock moment;
  Charge(transaction, queue, results);
  transaction.ReserveDeferred(results.size());
  for (const wire::TaskResult& result : results) {
    if (queue.sending.in_flight.empty() ||
        queue.sending.in_flight.front().sequence != result.sequence()) {
      queue.worker->Kill(
          MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                    "the device process gave an answer out of order and was replaced"));
      return;
    }
    // A worker confirms a cancelled task before it sends the task's result, so this one has begun.
    if (queue.sending.recalls.count(result.sequence()) > 0)
      parts_.cancellation->Answered(transaction, queue, result.sequence(), /*taken=*/false);
    DeviceQueue::InFlight entry = std::move(queue.sending.in_flight.front());
    queue.sending.in_flight.pop_front();
    parts_.task_memory->ReleaseAbandoned(transaction, entry);
    if (entry.task == nullptr) continue;
    entry.task->timeline.run_seconds += result.run_seconds();
    if (entry.last) {
      TaskEnded(transaction, queue, entry.task, result);
    } else if (result.status().code() != 0) {
      entry.task->sent.early_error = StatusOf(*entry.task, queue, result.status());
    }
  }
  parts_.memory->Changed(transaction);
  transaction.work().Pump(queue);
  // Here rather than at the end, so that `moment` saves readings of the clock.
  core_->settle(transaction);
}

void TaskResults::Charge(TenantTransaction& transaction, DeviceQueue& queue,
                         absl::Span<const wire::TaskResult> results) {
  double device_seconds = 0;
  for (const wire::TaskResult& result : results)
    device_seconds += std::max(0.0, result.run_seconds());
  parts_.queues->Charge(transaction, queue, device_seconds);
  parts_.slices->Charge(queue, device_seconds);
}

void TaskResults::TaskEnded(TenantTransaction& transaction, DeviceQueue& queue,
                            const std::shared_ptr<Task>& task, const wire::TaskResult& result) {
  absl::Status status = task->sent.early_error;
  if (status.ok()) status = StatusOf(*task, queue, result.status());
  // It followed a task that failed after this one was sent: what it computed is from spoiled input.
  if (absl::Status error = FirstInputError(*task); status.ok() && !error.ok()) status = error;
  // The device measured it best: what was seen of its start came no earlier than that.
  SteadyTime begin = std::max(task->timeline.dispatch_time,
                              core_->Now() - absl::Seconds(task->timeline.run_seconds));
  task->timeline.begin_time = task->timeline.begin_time == SteadyTime()
                                  ? begin
                                  : std::min(task->timeline.begin_time, begin);
  transaction.ChangeOf(queue.device).busy_seconds += result.run_seconds();
  if (status.ok()) {
    parts_.health->Worked(transaction, queue.device);
    // A run by blocks says nothing of the operation's own code, and the first on a device takes
    // longer: the next operation of a chain would go to a device that was not measured.
    const bool by_blocks =
        task->code.block_loops != nullptr ||
        (task->code.compiled != nullptr && task->code.compiled->elements_by_blocks);
    if (!by_blocks) parts_.placer->Ran(transaction, *task, queue, result.run_seconds());
  }
  events_->Complete(transaction, task, std::move(status));
}

}  // namespace stride::engine
