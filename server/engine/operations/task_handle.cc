#include "server/engine/operations/task_handle.h"

#include <optional>

#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/operations/tenant_batch.h"
#include "server/engine/persistence/describe.h"

namespace stride::engine {
namespace {

// The first error in the order of the list. All tasks must have ended.
absl::Status FirstError(const std::vector<std::shared_ptr<Task>>& tasks) {
  for (const auto& task : tasks) {
    if (!task->result.ok()) return task->result;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TaskHandle::Wait(SteadyTime deadline) {
  absl::Status first;
  for (const auto& task : Awaited()) {
    if (!Await(task->finished, deadline)) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
                       "the deadline passed before the operation ended");
    }
    if (first.ok()) first = task->result;
  }
  return first;
}

bool TaskHandle::done() const {
  for (const auto& task : Awaited()) {
    if (!task->finished.HasBeenNotified()) return false;
  }
  return true;
}

template <typename Function>
auto TaskHandle::InTransaction(SubmitBatch* batch, Function function) const {
  if (batch != nullptr) return function(static_cast<TenantBatch*>(batch)->transaction());
  TenantTransaction transaction(*core_, tenant_);
  return function(transaction);
}

void TaskHandle::Cancel(SubmitBatch* batch) {
  if (accepted_.task == nullptr) return;
  InTransaction(batch, [&](TenantTransaction& transaction) {
    for (const auto& helper : accepted_.helpers)
      scheduler_->cancellation().Cancel(transaction, helper);
    scheduler_->cancellation().Cancel(transaction, accepted_.task);
  });
}

void TaskHandle::OnDone(Done callback, SubmitBatch* batch) {
  InTransaction(batch, [&](TenantTransaction& transaction) {
    AddCallback(transaction, std::move(callback));
  });
}

void TaskHandle::AddCallback(TenantTransaction& transaction, Done callback) {
  const bool one = !accepted_.waits_for_helpers || accepted_.helpers.empty();
  if (one && accepted_.task != nullptr && accepted_.task->state != TaskState::kDone) {
    accepted_.task->callbacks.on_done.push_back(std::move(callback));
    return;
  }
  // Shared by the tasks' callbacks: the last of them calls `callback`. Transactions guard the
  // count.
  struct Last {
    Core* core;
    TenantId tenant;
    std::vector<std::shared_ptr<Task>> tasks;
    Done callback;
    int left = 0;
  };
  auto last = std::make_shared<Last>(Last{core_, tenant_, Awaited(), std::move(callback)});
  auto call = [last] { last->callback(FirstError(last->tasks)); };
  for (const auto& task : last->tasks) {
    if (task->state == TaskState::kDone) continue;
    ++last->left;
    task->callbacks.on_done.push_back([last, call](const absl::Status&) {
      {
        TenantTransaction transaction(*last->core, last->tenant);
        if (--last->left > 0) return;
      }
      call();
    });
  }
  if (last->left == 0) transaction.Defer(call);
}

void TaskHandle::Describe(absl::FunctionRef<v1::Array*()> add, SubmitBatch* batch) const {
  InTransaction(batch, [&](TenantTransaction&) {
    for (const auto& array : accepted_.outputs) engine::Describe(*core_, *array, add());
  });
}

bool TaskHandle::NotePending(session::PendingArrays* outputs, SubmitBatch* batch) const {
  return InTransaction(batch, [&](TenantTransaction&) {
    for (const auto& array : accepted_.outputs) {
      if (!session::IsPending(*array)) return false;
    }
    for (const auto& array : accepted_.outputs) outputs->push_back(session::Note(*array));
    return true;
  });
}

v1::Timeline TaskHandle::timeline() const {
  if (accepted_.task == nullptr) return {};
  // A finished task is constant, so no lock is needed.
  if (accepted_.task->finished.HasBeenNotified()) return DescribeTimeline(*core_, *accepted_.task);
  TenantTransaction transaction(*core_, tenant_);
  return DescribeTimeline(*core_, *accepted_.task);
}

int64_t TaskHandle::OutputBytes(int output) const {
  if (output >= static_cast<int>(accepted_.outputs.size())) return 0;
  return accepted_.outputs[output]->info->size_bytes();
}

OperationHandle::Outcome TaskHandle::TakeOutcome(const std::vector<bool>& wanted) {
  Outcome out;
  TenantTransaction transaction(*core_, tenant_);
  for (size_t i = 0; i < accepted_.outputs.size(); ++i) {
    const session::Array& array = *accepted_.outputs[i];
    out.arrays.push_back(engine::Describe(*core_, array));
    out.values.emplace_back();
    if (i < wanted.size() && wanted[i])
      out.values.back() = reader_->ReadAtOnce(transaction, tenant_, array);
  }
  if (accepted_.task != nullptr) out.timeline = DescribeTimeline(*core_, *accepted_.task);
  if (accepted_.task != nullptr && accepted_.task->printed != nullptr)
    out.printed = *std::exchange(accepted_.task->printed, nullptr);
  return out;
}

absl::StatusOr<v1::InlineArray> TaskHandle::ReadInline(int output, SteadyTime deadline) {
  return reader_->ReadInline(tenant_, accepted_.outputs[output], deadline);
}

std::vector<std::shared_ptr<Task>> TaskHandle::Awaited() const {
  std::vector<std::shared_ptr<Task>> tasks;
  if (accepted_.waits_for_helpers) tasks = accepted_.helpers;
  if (accepted_.task != nullptr) tasks.push_back(accepted_.task);
  return tasks;
}

}  // namespace stride::engine
