#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/program_launch.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"
#include "server/engine/core/waiting_tasks.h"
#include "server/engine/core/worker_events.h"
#include "server/engine/core/worker_source.h"
#include "server/engine/memory/memory_manager.h"
#include "server/engine/memory/out_of_core.h"
#include "server/engine/scheduling/cancellation.h"
#include "server/engine/scheduling/code_preparer.h"
#include "server/engine/scheduling/deadlines.h"
#include "server/engine/scheduling/dependency_tracker.h"
#include "server/engine/scheduling/health_watch.h"
#include "server/engine/scheduling/placer.h"
#include "server/engine/scheduling/time_slices.h"
#include "server/engine/scheduling/worker_starter.h"

namespace stride::engine {

// Takes tasks from acceptance to their end: order, placement, code, worker, memory, inputs,
// dispatch, results, and what to do when a worker dies.
//
// A task waits (kWaiting) until every access before it has ended, or, better, is already in the
// queue of one worker: then it may follow there at once, since a worker keeps order. It is placed
// on the queue expected to finish it first (placement.h), prepared there (kPreparing) and
// dispatched. A function without a transaction says whether its caller may have one.
class Scheduler : public WorkerSource,
                  private WorkerEvents,
                  private TaskEvents,
                  private WaitingTasks,
                  private OutOfCoreExecutor::Tasks {
 public:
  explicit Scheduler(Core* core);

  // Refuses with QUEUE_FULL or DRAINING; otherwise the task is entered into its buffers' order and
  // goes its way, not before `after`, if given, ended.
  absl::Status Enqueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                       const std::shared_ptr<Task>& after = nullptr);

  // A task that an earlier daemon had accepted: enters it into its buffers' order, after those
  // restored before. Resume lets it go its way once all are there.
  void Restore(GlobalTransaction& transaction, const std::shared_ptr<Task>& task);
  void Resume(GlobalTransaction& transaction, const std::shared_ptr<Task>& task);

  // Ends a task that has not been dispatched, or a host access. Its outputs carry the status when
  // it is an error.
  void Finish(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
              absl::Status status);
  // Ends it: at once if it waits, or when its worker has taken it out of its queue; a running one
  // when it ends by itself within the grace, else its worker is killed.
  void Cancel(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  // All of a tenant's, of which some may be null; a few hundred in a transaction. The caller
  // has none.
  void CancelAll(const TenantId& tenant, absl::Span<const std::shared_ptr<Task>> tasks);

  DeviceQueue& QueueFor(TenantTransaction& transaction, const TenantId& tenant, int device) {
    return queues_.Get(transaction, tenant, device);
  }
  DeviceQueues& queues() { return queues_; }
  MemoryManager& memory() { return memory_; }

  absl::StatusOr<std::shared_ptr<broker::Worker>> BlockingWorker(
      DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena,
      SteadyTime deadline = SteadyTime::InfiniteFuture()) override;

  int num_unfinished(TenantTransaction& transaction, const TenantId& tenant) const;
  // Charges the tenant for what its workers have used since their last tasks ended.
  void ChargeWorkers(TenantTransaction& transaction, const TenantId& tenant);
  // Unfinished tasks of all tenants. Any thread, without a lock.
  int num_unfinished() const;

  DeviceAccount& account(int device) const { return core_->device_accounts[device]; }
  // Expected run time of the tasks placed on the device, with the changes of this transaction.
  double QueueSeconds(TenantTransaction& transaction, int device) const {
    return placer_.QueueSeconds(transaction, device);
  }
  // Measures the cost of workers again. The caller has no transaction.
  void MeasureWorkers();
  WorkerStarter& starter() { return starter_; }
  HealthWatch& health() { return health_; }

  // The engine ends: waits for a worker, for memory or for a piece of an operation are over. Their
  // tasks stop without a result, since the next daemon may run them.
  void BeginEnd(GlobalTransaction& transaction);
  // Releases the tasks that have not ended, without a result, when no other thread runs any more.
  // Tasks and buffers refer to each other, so they would leak.
  void DropUnfinished();

  // Ends workers without work for long and gives back memory that nothing uses.
  void Housekeep(GlobalTransaction& transaction);

  // Does the transaction's work list: evaluates freed tasks, sends what may be sent, gives time
  // slices. The end of each transaction calls it, and a batch after each operation.
  void Settle(TenantTransaction& transaction);

  // Called before a SubmitBatch ends: sends what became ready in it for workers that have work.
  void FlushBatch(TenantTransaction& transaction);

  // A loop or a branch has ended.
  void BodiesEnded(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                   absl::Status status);
  // The engine ends. In any transaction.
  bool ending() const { return core_->ending; }

 private:
  void Evaluate(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  void Place(TenantTransaction& transaction, const std::shared_ptr<Task>& task, DeviceQueue& queue);
  void Unplace(TenantTransaction& transaction, Task& task);

  // Each does its part or starts it; false: the task waits or has ended.
  void Prepare(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  // Whether it is to write memory that a client has mapped.
  static bool WritesLoan(const Task& task);
  bool HaveMemory(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  using Buffers = absl::InlinedVector<std::shared_ptr<store::Buffer>, 3>;
  // Takes only free blocks of the task's queue, so the tenant's transaction suffices.
  bool TakeMemoryAtHand(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                        const Buffers& lacking);
  // Allocates a block for an inline value in host memory that the task's device accesses directly.
  bool AllocateInPlace(TenantTransaction& transaction, const Task& task,
                       const store::Buffer& buffer, store::Allocation* block);
  // The block is the buffer's: the task makes its content, or it is copied there at once. False: it
  // has to be moved.
  bool FillAtHand(Task& task, store::Buffer& buffer, const store::Allocation& block);
  bool TakeMemory(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                  const Buffers& lacking);
  // Work memory of the task that is to be counted on its queue's device.
  uint64_t CountedScratch(const Task& task) const;
  // Has it prepared in a global transaction, after this one.
  void PrepareWithAll(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void HaveInputs(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void PrepareAll(TenantTransaction& transaction, DeviceQueue& queue);

  // From a task's having its memory to its end, its buffers stay where they are.
  void Hold(TenantTransaction& transaction, Task& task);
  void LetGo(TenantTransaction& transaction, Task& task);
  bool Unhold(TenantTransaction& transaction, Task& task);

  // WaitingTasks and OutOfCoreExecutor::Tasks, for the parts that place memory.
  void Retry(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) override {
    Prepare(transaction, task);
  }
  void Fail(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
            absl::Status status) override {
    EndUnrun(transaction, task, std::move(status));
  }
  void CopyEnded(GlobalTransaction& transaction, const std::shared_ptr<Task>& task) override {
    Evaluate(transaction, task);
  }
  void Postpone(GlobalTransaction& transaction, Task& task) override {
    Unplace(transaction, task);
    SetState(transaction, task, TaskState::kWaiting);
  }
  void Begun(GlobalTransaction& transaction, Task& task) override {
    Unplace(transaction, task);
    SetState(transaction, task, TaskState::kDispatched);
  }
  void Ended(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
             absl::Status status) override {
    Complete(transaction, task, std::move(status));
  }
  absl::Status EnqueuePiece(GlobalTransaction& transaction,
                            const std::shared_ptr<Task>& piece) override {
    return Enqueue(transaction, piece);
  }
  void CancelPiece(TenantTransaction& transaction, const std::shared_ptr<Task>& piece) override {
    Cancel(transaction, piece);
  }
  // Ends a task that a conductor runs: its tasks in flight are cancelled.
  void StopStream(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                  absl::Status status);

  void PumpNow(TenantTransaction& transaction, DeviceQueue& queue);
  // Pump, unless the worker is busy and what is ready may wait for its next answer, or for what is
  // being accepted with it, to travel together: a packet costs more than a small operation.
  static void PumpSoon(TenantTransaction& transaction, DeviceQueue& queue);
  bool PumpOnce(TenantTransaction& transaction, DeviceQueue& queue);
  // As it is to be sent now, after its zero fills; the queue's until the next one.
  const wire::Task& BoundTask(const Task& task, DeviceQueue& queue) const;
  // `size`: what its ByteSizeLong has answered.
  void AddToPacket(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                   DeviceQueue& queue, const wire::Task& bound, size_t size);
  absl::Status BringWhatItNeeds(const Task& task, DeviceQueue& queue);
  absl::Status MapForTask(const Task& task, DeviceQueue& queue);
  absl::Status LoadModule(const std::shared_ptr<const broker::CompiledModule>& module,
                          DeviceQueue& queue);

  // Text of a task in flight, for the client that reads its session's.
  void Printed(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
               std::string_view text, uint64_t dropped_lines) override;
  void TasksDone(TenantTransaction& transaction, DeviceQueue& queue,
                 absl::Span<const wire::TaskResult> results) override;
  void WorkerDied(GlobalTransaction& transaction, DeviceQueue& queue,
                  const broker::WorkerDeath& death) override;
  void ReportLoss(TenantTransaction& transaction, const DeviceQueue& queue,
                  const broker::WorkerDeath& death, const std::shared_ptr<Task>& running);
  void TakeBack(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  void LeaveQueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  void ReleaseHeld(TenantTransaction& transaction, const DeviceQueue::InFlight& entry);

  // loaded_programs.cc
  absl::Status LoadProgram(const Task& task, DeviceQueue& queue);
  void ForgetPrograms(DeviceQueue& queue);

  void HealthChanged(GlobalTransaction& transaction, int device);
  void EvacuateUnhealthy(TenantTransaction& transaction, const std::shared_ptr<Task>& task);

  void EndUnrun(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                absl::Status status) override;
  struct EarlyEnd;
  void EndEarly(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                const EarlyEnd& why);
  void DeadlinePassed(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  void TasksCancelled(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
                      bool taken) override {
    cancellation_.Answered(transaction, queue, sequence, taken);
  }
  void NoteStart(TenantTransaction& transaction, DeviceQueue& queue);
  void TaskEnded(TenantTransaction& transaction, DeviceQueue& queue,
                 const std::shared_ptr<Task>& task, const wire::TaskResult& result);
  absl::Status TaskStatus(const Task& task, const DeviceQueue& queue,
                          const wire::Status& status) const;

  void Complete(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                absl::Status status);
  void BeginBodies(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void SetState(TenantTransaction& transaction, Task& task, TaskState state);

  // WorkerEvents
  void WorkerStarted(GlobalTransaction& transaction, DeviceQueue& queue) override;
  void WorkerNotStarted(GlobalTransaction& transaction, DeviceQueue& queue,
                        const absl::Status& status) override;
  void WorkerEnds(GlobalTransaction& transaction, DeviceQueue& queue) override;
  void WorkerGone(GlobalTransaction& transaction) override;

  absl::Status AwaitWorker(GlobalTransaction& transaction, DeviceQueue& queue,
                           SteadyTime deadline) override {
    return starter_.Await(transaction, queue, deadline);
  }
  // The queue's, with the arena mapped; null: there is none that lives.
  std::shared_ptr<broker::Worker> WorkerAtHand(DeviceQueue& queue,
                                               const std::shared_ptr<store::Arena>& arena);

  Core* const core_;
  DeviceQueues queues_;
  // State of the tenants of one partition.
  struct alignas(64) Partition {
    std::map<TenantId, int> unfinished;
    std::vector<std::shared_ptr<Task>> unfinished_tasks;  // in no order
    std::atomic<int> num_unfinished{0};                   // their number; any thread reads it
  };
  PerPartition<Partition> partitions_;
  Partition& Mine(TenantTransaction& transaction, const TenantId& tenant) {
    return partitions_.Of(transaction, tenant);
  }
  const Partition& Mine(TenantTransaction& transaction, const TenantId& tenant) const {
    return partitions_.Of(transaction, tenant);
  }
  MemoryManager memory_;
  OutOfCoreExecutor out_of_core_;
  HealthWatch health_;
  WorkerStarter starter_;
  DependencyTracker dependencies_;
  Placer placer_;
  CodePreparer code_;
  TimeSlices slices_;
  Deadlines deadlines_;
  Cancellation cancellation_;
  void AddUnfinished(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void RemoveUnfinished(TenantTransaction& transaction, Task& task);
  static void NoteUnfinished(Partition& partition);
};

}  // namespace stride::engine
