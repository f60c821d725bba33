#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/hazards.h"
#include "server/scheduler/links.h"
#include "server/scheduler/placement.h"
#include "server/scheduler/recorder.h"

namespace stride::scheduler {
namespace {

// Empty arenas kept warm for the next arrays of a lane: a first touch of fresh memory costs about a
// second a GiB.
constexpr uint64_t kKeepEmptyBytes = uint64_t{512} << 20;

// A lane keeps its turn for at least 1 / kYieldPart of the quantum. The default of 4 ms is 30 times
// the cost of a change of tenants on a GPU (docs/isolation.md). So a tenant that wakes up as often
// as it can costs the others 7 % of their share.
constexpr int kYieldPart = 5;

absl::Status CancelledStatus(std::string_view text) {
  return MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED, text);
}

}  // namespace

Scheduler::Scheduler(Core* core)
    : core_(core),
      lanes_(core),
      memory_(
          core, &lanes_,
          {.changed = [this](GlobalTransaction& transaction, Lane&) { MemoryChanged(transaction); },
           .give_way =
               [this](GlobalTransaction& transaction, const Lane& lane, std::optional<int> device) {
                 return GiveWay(transaction, device, &lane);
               }}),
      health_(core, {.changed = [this](GlobalTransaction& transaction,
                                       int device) { HealthChanged(transaction, device); },
                     .give_way = [this](GlobalTransaction& transaction,
                                        int device) { return GiveWay(transaction, device); },
                     .tried = [this](GlobalTransaction& transaction,
                                     int device) { CanaryEnded(transaction, device); }}),
      seats_(static_cast<int>(core->broker->devices().size()),
             {.at_once = core->options.max_starts}),
      costs_(static_cast<int>(core->broker->devices().size())),
      device_used_before_(core->broker->devices().size()),
      spilling_(core->num_places()) {
  core->settle = [this](TenantTransaction& transaction) { Settle(transaction); };
  for (size_t i = 0; i < core->broker->devices().size(); ++i) {
    turns_.emplace_back(FairShare::Options{.quantum = core->options.fair_quantum,
                                           .yield_after = core->options.fair_quantum / kYieldPart,
                                           .hand_over = core->options.fair_hand_over});
  }
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
  if (core_->durability != nullptr && !task->piece) core_->durability->Enqueued(transaction, *task);
  core_->recorder->Accepted(transaction, task);
  if (after != nullptr) LinkBehind(task, after);
  task->order = ++Mine(transaction, task->tenant).last_order;
  RegisterAccesses(task);
  WatchDeadline(transaction, *task);
  Evaluate(transaction, task);
  return absl::OkStatus();
}

void Scheduler::Restore(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) {
  AddUnfinished(transaction, task);
  task->order = ++Mine(transaction, task->tenant).last_order;
  RegisterAccesses(task);
  WatchDeadline(transaction, *task);
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
    if (!task->pending.empty() || WaitsForCopy(transaction, task)) return;
    SetState(transaction, *task, TaskState::kDispatched);
    Hold(transaction, *task);
    ContentChanges(transaction, *task);
    if (task->granted != nullptr)
      transaction.Defer([granted = std::move(task->granted)] { (*granted)(); });
    return;
  }
  if (task->bodies != nullptr) {
    if (task->pending.empty()) BeginBodies(transaction, task);
    return;
  }
  Lane* via = nullptr;
  for (const auto& before : task->pending) {
    if (before->state != TaskState::kDispatched || before->lane == nullptr) return;
    if (before->num_recalls > 0) return;
    if (via != nullptr && via != before->lane) return;
    via = before->lane;
  }
  if (via != nullptr) {
    // A move must see its input's last content, not one on its way.
    bool fits = !task->drop_other_replicas && via->tenant == task->tenant &&
                health_.Serves(via->device) && MayRunOn(*task, via->device);
    if (!fits) return;
    Place(transaction, task, *via);
    return;
  }
  int device = Choose(transaction, *task);
  if (device < 0) {
    EndUnrun(transaction, task, NoDeviceFor(*task));
    return;
  }
  Place(transaction, task, LaneFor(transaction, task->tenant, device));
}

namespace {

// To bring a buffer to a device, from the place that is nearest.
double MoveSeconds(const broker::Broker& broker, const store::Buffer& buffer, int to, double rate) {
  const auto& devices = broker.devices();
  const auto bytes = static_cast<double>(buffer.size);
  double least = SecondsOver(nullptr, bytes, rate);
  if (broker.links().empty()) return least;
  for (const auto& [from, block] : buffer.replicas) {
    if (from >= static_cast<int>(devices.size())) continue;
    const wire::Link* link = FindLink(broker.links(), devices[from].id(), devices[to].id());
    least = std::min(least, SecondsOver(link, bytes, rate));
  }
  return least;
}

}  // namespace

bool Scheduler::MayRunOn(const Task& task, int device) const {
  const std::string& kind = task.plan().required_kind;
  return (task.pinned_device < 0 || task.pinned_device == device) &&
         (kind.empty() || kind == core_->broker->devices()[device].kind());
}

double Scheduler::QueueSeconds(TenantTransaction& transaction, int device) const {
  const DeviceChange* change = transaction.FindChange(device);
  const int64_t here = change != nullptr ? change->queue_nanoseconds : 0;
  return account(device).queue_seconds() + 1e-9 * static_cast<double>(here);
}

int Scheduler::Choose(TenantTransaction& transaction, const Task& task) {
  const auto& devices = core_->broker->devices();
  const RunTimeModel& model = Mine(transaction, task.tenant).model;
  std::vector<Candidate> candidates;
  // A session's arrays start out together: its home device comes first among equals, otherwise the
  // devices take turns.
  int first = task.session != nullptr && task.session->home_device >= 0
                  ? task.session->home_device
                  : static_cast<int>(rotation_++ % devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    int index = static_cast<int>((first + i) % devices.size());
    const wire::DeviceDescription& device = devices[index];
    Candidate candidate;
    candidate.device = index;
    candidate.suitable = health_.Serves(index) && MayRunOn(task, index);
    candidate.queued_seconds = QueueSeconds(transaction, index);
    candidate.run_seconds = model.Estimate(device, CodeKeyOf(task), task.plan());
    double rate = std::max(1e8, device.transfer_bytes_per_second());
    for (const Use& use : task.uses) {
      if (use.buffer == nullptr || use.fresh || use.buffer->replicas.count(index) > 0) continue;
      // Inline bytes move to any device, so only replicas on other devices make a difference.
      if (!use.buffer->replicas.empty())
        candidate.transfer_seconds += MoveSeconds(*core_->broker, *use.buffer, index, rate);
    }
    candidates.push_back(candidate);
  }
  return ChooseDevice(candidates);
}

void Scheduler::Place(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                      Lane& lane) {
  task->lane = &lane;
  task->estimate_seconds = ExpectedSeconds(transaction, *task, lane);
  DeviceChange& account = transaction.ChangeOf(lane.device);
  account.queue_nanoseconds += Nanoseconds(task->estimate_seconds);
  ++account.queue_depth;
  lane.preparing.Add(*task);
  lane.last_used = core_->Now();
  if (task->session != nullptr && task->session->home_device < 0)
    task->session->home_device = lane.device;
  SetState(transaction, *task, TaskState::kPreparing);
  Prepare(transaction, task);
}

void Scheduler::Unplace(TenantTransaction& transaction, Task& task) {
  LetGo(transaction, task);
  if (task.lane == nullptr) return;
  LeaveMemoryQueue(transaction, task);
  DeviceChange& account = transaction.ChangeOf(task.lane->device);
  account.queue_nanoseconds -= Nanoseconds(task.estimate_seconds);
  --account.queue_depth;
  task.lane->last_used = core_->Now();
  task.lane->preparing.Remove(task);
  if (task.queued_ready) {  // one that was sent is not: thousands may stand there
    auto& ready = task.lane->ready;
    auto place = std::find_if(ready.begin(), ready.end(),
                              [&](const auto& other) { return other.get() == &task; });
    if (place != ready.end()) ready.erase(place);
  }
  task.queued_ready = false;
  task.lane = nullptr;
}

void Scheduler::Finish(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                       absl::Status status) {
  if (task->state == TaskState::kDone) return;
  Complete(transaction, task, std::move(status));
}

void Scheduler::Cancel(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state == TaskState::kDone) return;
  if (task->stream != nullptr) {
    StopStream(transaction, task, CancelledStatus("the operation was cancelled while it ran"));
  } else if (task->state == TaskState::kDispatched && !task->host_access) {
    Stop(transaction, task, CancelledStatus("the operation was cancelled before it ran"),
         CancelledStatus("the operation was cancelled while it ran"));
  } else if (task->host_access) {
    Complete(transaction, task, CancelledStatus("the operation was cancelled before it ended"));
  } else {
    EndUnrun(transaction, task, CancelledStatus("the operation was cancelled before it ran"));
  }
}

void Scheduler::Complete(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                         absl::Status status) {
  bool was_dispatched = task->state == TaskState::kDispatched;
  if (Lane* lane = task->lane) {
    DeviceChange& account = transaction.ChangeOf(lane->device);
    if (!task->piece) ++(status.ok() ? account.succeeded : account.failed);
    task->ran_on_device = lane->device;
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
  TaskList dependents = ReleaseAccesses(*task);
  if (core_->durability != nullptr && !task->piece)
    core_->durability->Ended(transaction, *task, was_dispatched);
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
  if (task->piece && !task->of_body) WakeWaiters(transaction);  // Stream::Await
  auto& freed = transaction.work().freed;
  std::move(dependents.begin(), dependents.end(), std::back_inserter(freed));
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
      Lane& lane = *work.pumped.front();
      work.pumped.erase(work.pumped.begin());
      PumpNow(transaction, lane);
    } else {
      const int device = work.devices.front();
      work.devices.erase(work.devices.begin());
      GiveTurnsNow(transaction, device);
    }
  }
}

// Threads in GlobalTransaction::Await evaluate their conditions soon.
void Scheduler::WakeWaiters(TenantTransaction& transaction) {
  transaction.Defer([core = core_] { GlobalTransaction transaction(*core); });
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
  if (state != TaskState::kPreparing) core_->recorder->Changed(transaction, task);
  if (task.observer != nullptr)
    transaction.Defer([observer = *task.observer, state] { observer(state); });
}

int Scheduler::HomeOf(int64_t bytes, int device) const {
  for (int place : {device, core_->memory_place(), core_->disk_place()}) {
    if (bytes <= static_cast<int64_t>(memory_.limit_bytes(place))) return place;
  }
  return device;
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
  ForgetDeadline(transaction, task);
  Partition& partition = Mine(transaction, task.tenant);
  auto of_tenant = partition.unfinished.find(task.tenant);
  if (--of_tenant->second == 0) partition.unfinished.erase(of_tenant);
  std::vector<std::shared_ptr<Task>>& tasks = partition.unfinished_tasks;
  std::swap(tasks[task.unfinished_index], tasks.back());
  tasks[task.unfinished_index]->unfinished_index = task.unfinished_index;
  tasks.pop_back();
  NoteUnfinished(partition);
  if (core_->draining && tasks.empty()) WakeWaiters(transaction);
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
void Scheduler::BeginEnd(GlobalTransaction& transaction) { ending_ = true; }

void Scheduler::DropUnfinished() {
  std::vector<std::shared_ptr<Task>> tasks;
  for (Partition& partition : partitions_.Unguarded()) {
    std::move(partition.unfinished_tasks.begin(), partition.unfinished_tasks.end(),
              std::back_inserter(tasks));
    partition.unfinished_tasks.clear();
    partition.deadlines.clear();
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

int Scheduler::num_workers(GlobalTransaction& transaction, int device) const {
  int count = 0;
  lanes_.ForEach(transaction, [&](const Lane& lane) {
    count += lane.device == device && lane.worker != nullptr ? 1 : 0;
  });
  return count;
}

void Scheduler::Housekeep(GlobalTransaction& transaction) {
  memory_.Reclaim(transaction);
  RetryMemory(transaction);  // arrays may have been deleted
  LogSpill(transaction);
  lanes_.ForEach(transaction, [&](Lane& lane) {
    bool idle =
        lane.preparing.empty() && lane.in_flight.empty() && lane.num_copies == 0 && !lane.growing;
    if (lane.worker != nullptr) Charge(transaction, lane, 0);
    bool keep = !idle || lane.last_used + core_->options.keep_empty_time > core_->Now();
    memory_.Trim(transaction, lane, keep ? kKeepEmptyBytes : 0);
    ForgetReplays(lane);
  });
  TendWorkers(transaction);
}

}  // namespace stride::scheduler
