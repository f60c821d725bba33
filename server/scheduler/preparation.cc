// Scheduler: what a placed task needs before it can be sent to its worker.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/start_retry.h"

namespace stride::scheduler {
namespace {

constexpr size_t kMaxNames = 50;  // of kernels, in one error

absl::Status OutOfMemory(const Lane& lane, uint64_t size, uint64_t limit) {
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY,
                  absl::StrCat("the device has no memory left for this array; delete arrays or use "
                               "another device. Needed: ",
                               size, " bytes, limit: ", limit, " bytes"),
                  absl::Seconds(1),
                  {{"device", absl::StrCat("devices/", lane.description.id())},
                   {"bytes", absl::StrCat(size)},
                   {"limit", absl::StrCat(limit)}});
}

// A compiler's refusal, at the field of the launch that is to blame.
absl::Status AtLaunch(const absl::Status& refusal) {
  if (!absl::IsInvalidArgument(refusal)) return refusal;
  if (ReasonOf(refusal) == v1::ERROR_REASON_UNKNOWN_ENTRY)
    return AtField(refusal, "kernel_launch.entry", "not in the code");
  return AtField(refusal, "kernel_launch.source", "does not compile");
}

}  // namespace

void Scheduler::Prepare(const std::shared_ptr<Task>& task) {
  if (task->state != TaskState::kPreparing || task->queued_ready) return;
  Lane& lane = *task->lane;
  if (!health_.Serves(lane.device)) {
    LeaveIllDevice(task);
    return;
  }
  if (!HaveCode(task) || !HaveArguments(task)) return;
  if (!HaveWorker(lane) || !HaveOutputs(task) || !HaveInputs(task)) return;
  task->queued_ready = true;
  // What is ready depends on nothing else that is: its own kind may be overtaken by what matters
  // more.
  auto less = [](const auto& a, const auto& b) { return a->priority > b->priority; };
  lane.ready.insert(std::upper_bound(lane.ready.begin(), lane.ready.end(), task, less), task);
  Pump(lane);
}

void Scheduler::PrepareAll(Lane& lane) {
  std::vector<std::shared_ptr<Task>> tasks(lane.preparing.begin(), lane.preparing.end());
  for (const auto& task : tasks) {
    if (task->lane == &lane) Prepare(task);
  }
}

bool Scheduler::HaveCode(const std::shared_ptr<Task>& task) {
  if (!task->plan.code.has_value()) return true;
  const std::string& target = task->lane->description.target();
  if (task->module != nullptr && task->module->target == target) return true;
  task->module = core_->broker->compiler().Lookup(target, *task->plan.code);
  if (task->module != nullptr) return true;
  if (std::exchange(task->compile_requested, true)) return false;
  task->compile_start = core_->Now();
  // Off the lock: the compiler may call back at once.
  core_->executor.Run([this, task, target] {
    core_->broker->compiler().Compile(target, *task->plan.code, [this, task](auto module) {
      Locked lock(*core_);
      task->compile_requested = false;
      task->compile_end = core_->Now();
      if (task->state != TaskState::kPreparing) return;
      if (!module.ok()) {
        EndUnrun(task, task->operation != nullptr ? AtLaunch(module.status()) : module.status());
        return;
      }
      task->module = *std::move(module);
      Prepare(task);
    });
  });
  return false;
}

bool Scheduler::HaveArguments(const std::shared_ptr<Task>& task) {
  if (task->operation == nullptr || task->arguments_bound) return true;
  const v1::KernelLaunch& launch = task->operation->kernel_launch();
  const wire::KernelDescription* kernel = nullptr;
  std::vector<std::string> known;
  for (const auto& candidate : task->module->description.kernels()) {
    if (candidate.entry() == launch.entry()) kernel = &candidate;
    if (known.size() < kMaxNames) known.push_back(candidate.entry());
  }
  if (kernel == nullptr) {
    EndUnrun(task, InvalidField(v1::ERROR_REASON_UNKNOWN_ENTRY, "kernel_launch.entry",
                                absl::StrCat("no __global__ function is called `", launch.entry(),
                                             "`. The module has: ", absl::StrJoin(known, ", ")),
                                {{"entry", launch.entry()}}));
    return false;
  }
  absl::Status status = ops::BindKernelArguments(launch, task->inputs, *kernel, &task->plan.task);
  if (!status.ok()) {
    EndUnrun(task, status);
    return false;
  }
  // Until now every array argument counted as written. Those behind pointers to const are not: a
  // fault must not spoil them.
  std::vector<bool> written(task->inputs.size(), false);
  for (int index : ops::WrittenOperands(launch, *kernel)) written[index] = true;
  for (size_t i = 0; i < task->inputs.size(); ++i) task->uses[i].write = written[i];
  task->arguments_bound = true;
  return true;
}

bool Scheduler::HaveWorker(Lane& lane) {
  if (lane.worker != nullptr) return true;
  StartWorker(lane);
  return false;
}

void Scheduler::StartWorker(Lane& lane) {
  if (std::exchange(lane.starting, true)) return;
  TryStart(&lane, /*tries=*/1, core_->Now());
}

void Scheduler::TryStart(Lane* lane, int tries, absl::Time first) {
  core_->starter.Run([this, lane, tries, first] {
    auto worker = core_->broker->StartWorker(lane->device);
    // One that dies while it starts is replaced like any other.
    std::optional<absl::Duration> pause;
    if (absl::IsAborted(worker.status()))
      pause = PauseBeforeNextStart(tries, core_->Now() - first, core_->options.start_patience);
    if (pause.has_value()) {
      core_->timer.At(core_->Now() + *pause,
                      [this, lane, tries, first] { TryStart(lane, tries + 1, first); });
      return;
    }
    uint64_t record = worker.ok() ? core_->recorder.StoreWorker(**worker) : 0;
    Locked lock(*core_);
    lane->starting = false;
    ++lane->num_start_tries;
    lane->start_error = worker.status();
    if (!worker.ok()) {
      StartFailed(*lane, worker.status());
      return;
    }
    lane->num_start_failures = 0;
    lane->worker = *worker;
    lane->worker_record = record;
    core_->recorder.WorkerAdopted(record, *lane);
    lane->mapped.clear();
    lane->loaded.clear();
    lane->load_errors.clear();
    lane->attributes.clear();
    lane->recalls.clear();
    lane->next_sequence = 1;
    const broker::Worker* identity = worker->get();
    (*worker)->Adopt({.tasks_done =
                          [this, lane, identity](absl::Span<const wire::TaskResult> results) {
                            Locked lock(*core_);
                            TasksDone(*lane, identity, results);
                          },
                      .cancelled =
                          [this, lane, identity](uint64_t sequence, bool taken) {
                            Locked lock(*core_);
                            TasksCancelled(*lane, identity, sequence, taken);
                          },
                      .died =
                          [this, lane, identity](const broker::WorkerDeath& death) {
                            Locked lock(*core_);
                            WorkerDied(*lane, identity, death);
                          }});
    PrepareAll(*lane);
    Pump(*lane);
  });
}

// Tried again until the device counts as ill, which sends its tasks elsewhere.
void Scheduler::StartFailed(Lane& lane, const absl::Status& why) {
  ++lane.num_start_failures;
  health_.StartFailed(lane.device, why);
  if (lane.preparing.empty()) return;
  bool watched = core_->options.health.interval != absl::InfiniteDuration();
  if (watched && lane.num_start_failures < core_->options.health.max_failures) {
    StartWorker(lane);
    return;
  }
  lane.num_start_failures = 0;
  std::vector<std::shared_ptr<Task>> tasks(lane.preparing.begin(), lane.preparing.end());
  absl::Status status =
      TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DEVICE_NOT_SERVING,
               absl::StrCat("the device cannot run work now: devices/", lane.description.id()),
               absl::Seconds(1));
  for (const auto& task : tasks) {
    if (task->state == TaskState::kPreparing) EndUnrun(task, status);
  }
}

bool Scheduler::HaveOutputs(const std::shared_ptr<Task>& task) {
  Lane& lane = *task->lane;
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || !use.fresh || use.buffer->replicas.count(lane.device) > 0)
      continue;
    store::Allocation allocation;
    Memory::Outcome outcome = memory_.Allocate(lane, use.buffer->size, &allocation);
    if (outcome == Memory::Outcome::kAllocated) {
      use.buffer->AddReplica(lane.device, allocation);
      continue;
    }
    // Running work may free memory when it ends; with none, waiting would be for ever.
    lane.memory_short = lane.memory_short || outcome == Memory::Outcome::kFull;
    if (outcome == Memory::Outcome::kLater || !lane.in_flight.empty()) return false;
    EndUnrun(task, OutOfMemory(lane, use.buffer->size, memory_.limit_bytes(lane.device)));
    return false;
  }
  return true;
}

bool Scheduler::HaveInputs(const std::shared_ptr<Task>& task) {
  Lane& lane = *task->lane;
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || use.fresh || use.buffer->replicas.count(lane.device) > 0) continue;
    auto& waiters = moves_[{use.buffer.get(), lane.device}];
    if (!waiters.empty()) {
      bool waiting = false;
      for (const auto& waiter : waiters) waiting = waiting || waiter == task;
      if (!waiting) {
        ++task->num_moves;
        waiters.push_back(task);
      }
      continue;
    }
    store::Allocation target;
    Memory::Outcome outcome = memory_.Allocate(lane, use.buffer->size, &target);
    if (outcome != Memory::Outcome::kAllocated) {
      moves_.erase({use.buffer.get(), lane.device});
      lane.memory_short = lane.memory_short || outcome == Memory::Outcome::kFull;
      if (outcome == Memory::Outcome::kFull && lane.in_flight.empty()) {
        EndUnrun(task, OutOfMemory(lane, use.buffer->size, memory_.limit_bytes(lane.device)));
      }
      return false;
    }
    ++task->num_moves;
    waiters.push_back(task);
    StartMove(task, use.buffer, target);
    if (task->state != TaskState::kPreparing) return false;
  }
  return task->num_moves == 0;
}

}  // namespace stride::scheduler
