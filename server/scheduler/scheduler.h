#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/base/steady_time.h"
#include "server/scheduler/core.h"
#include "server/scheduler/fair_share.h"
#include "server/scheduler/health_watch.h"
#include "server/scheduler/lane.h"
#include "server/scheduler/lanes.h"
#include "server/scheduler/memory.h"
#include "server/scheduler/replay.h"
#include "server/scheduler/run_time_model.h"
#include "server/scheduler/service/spill_sample.h"
#include "server/scheduler/task.h"
#include "server/scheduler/worker_measure.h"
#include "server/scheduler/worker_seats.h"

namespace stride::scheduler {

// Takes tasks from acceptance to their end: order, placement, code, worker, memory, inputs,
// dispatch, results, and what to do when a worker dies.
//
// A task waits (kWaiting) until every access before it has ended, or, better, is already in the
// queue of one worker: then it may follow there at once, since a worker keeps order. It is placed
// on the lane expected to finish it first (placement.h), prepared there (kPreparing) and
// dispatched. A function without a transaction says whether its caller may have one.
class Scheduler {
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

  // Releases a pin of the buffer: the caller had raised num_holders.
  void LetGo(TenantTransaction& transaction, store::Buffer& buffer);

  Lane& LaneFor(TenantTransaction& transaction, const TenantId& tenant, int device) {
    return lanes_.Get(transaction, tenant, device);
  }
  Memory& memory() { return memory_; }

  // A worker of the lane that has this arena mapped; starts one when there is none. Blocks: the
  // caller has no transaction.
  absl::StatusOr<std::shared_ptr<broker::Worker>> BlockingWorker(
      Lane& lane, const std::shared_ptr<store::Arena>& arena,
      SteadyTime deadline = SteadyTime::InfiniteFuture());
  // A block on a device, waiting for memory where it must. The caller has no transaction.
  absl::StatusOr<store::Allocation> BlockingAllocate(
      Lane& lane, uint64_t size, SteadyTime deadline = SteadyTime::InfiniteFuture());

  // lend.cc
  // Has the buffer's content on the device lie in an arena where nothing else does, nor did: where
  // it lies now if that is so, else after one copy on the device. Caller has a host access that
  // writes the buffer, and no transaction.
  absl::StatusOr<store::Allocation> PutAlone(const std::shared_ptr<store::Buffer>& buffer,
                                             int device, SteadyTime deadline);

  // Where an array of this size begins that is to be on `device`: there, or, when it is larger than
  // the device, where idle arrays go.
  int HomeOf(int64_t bytes, int device) const;

  int num_unfinished(TenantTransaction& transaction, const TenantId& tenant) const;
  // Charges the tenant for what its workers have used since their last tasks ended.
  void ChargeWorkers(TenantTransaction& transaction, const TenantId& tenant);
  // Unfinished tasks of all tenants. Any thread, without a lock.
  int num_unfinished() const;

  DeviceAccount& account(int device) const { return core_->device_accounts[device]; }
  // Expected run time of the tasks placed on the device, with the changes of this transaction.
  double QueueSeconds(TenantTransaction& transaction, int device) const;
  int num_workers(GlobalTransaction& transaction, int device) const;
  // So many that the device has at once, as far as is known now.
  int most_workers(GlobalTransaction&, int device) const {
    return seats_.most(device, core_->Now());
  }
  int most_workers(GlobalTransaction&) const { return seats_.most_of_all(core_->Now()); }
  // Measures the cost of workers again. The caller has no transaction.
  void MeasureWorkers();
  // Ends idle workers, so that their descriptors can be had; false: there is none.
  bool GiveDescriptors(GlobalTransaction& transaction) {
    return GiveWay(transaction, std::nullopt);
  }
  HealthWatch& health() { return health_; }

  SpillSample SampleSpill(GlobalTransaction& transaction) const;

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
  void SendHeld(TenantTransaction& transaction);

  bool IsMoving(TenantTransaction& transaction, const store::Buffer* buffer) const;

  // A loop or a branch has ended.
  void BodiesEnded(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                   absl::Status status);
  // The engine ends. In any transaction.
  bool ending() const { return ending_; }

 private:
  friend class Stream;
  void Evaluate(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  int Choose(TenantTransaction& transaction, const Task& task);
  // Whether it is the task's device, if it has one, and of the kind that it needs.
  bool MayRunOn(const Task& task, int device) const;
  void Place(TenantTransaction& transaction, const std::shared_ptr<Task>& task, Lane& lane);
  void Unplace(TenantTransaction& transaction, Task& task);

  // Each does its part or starts it; false: the task waits or has ended.
  void Prepare(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  bool HaveCode(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  // Before its code is compiled: docs/decisions/0041.
  std::shared_ptr<const broker::CompiledModule> BlockLoopsFor(const Task& task,
                                                              const std::string& target);
  bool HasPlainReduction(const FirstTier& tier, const std::string& target) const;
  bool RunByBlocks(Task& task, std::shared_ptr<const broker::CompiledModule> loops,
                   const std::string& target, PlannedCode& code);
  void NoteRunByBlocks(Task& task, std::shared_ptr<const broker::CompiledModule> loops,
                       const std::string& target);
  bool HaveArguments(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  // Whether it is to write memory that a client has mapped.
  static bool WritesLoan(const Task& task);
  bool HaveWorker(TenantTransaction& transaction, Lane& lane);
  bool HaveMemory(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  using Buffers = absl::InlinedVector<std::shared_ptr<store::Buffer>, 3>;
  // Takes only free blocks of the task's lane, so the tenant's transaction suffices.
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
  // Work memory of the task that is to be counted on its lane's device.
  uint64_t CountedScratch(const Task& task) const;
  // Has it prepared in a global transaction, after this one.
  void PrepareWithAll(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void HaveInputs(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void PrepareAll(TenantTransaction& transaction, Lane& lane);

  // From a task's having its memory to its end, its buffers stay where they are.
  void Hold(TenantTransaction& transaction, Task& task);
  void LetGo(TenantTransaction& transaction, Task& task);
  bool Unhold(TenantTransaction& transaction, Task& task);
  bool MayComeFree(GlobalTransaction& transaction, int device) const;
  void EnterMemoryQueue(GlobalTransaction& transaction, const std::shared_ptr<Task>& task);
  void LeaveMemoryQueue(TenantTransaction& transaction, Task& task);
  // Those who wait for memory are to look again, soon or now.
  void MemoryChanged(TenantTransaction& transaction);
  void RetryMemory(GlobalTransaction& transaction);

  // spill.cc. Like Memory::Allocate, and makes idle buffers leave a full place; kLater: some are on
  // their way.
  Memory::Outcome Allocate(GlobalTransaction& transaction, Lane& lane, uint64_t size, uint64_t turn,
                           store::Allocation* allocation);
  struct Spill {
    std::shared_ptr<store::Buffer> buffer;
    Lane* from;
    Lane* to;  // null: there is another copy
    store::Allocation source, target;
  };
  // The same for work memory, which lies in no arena.
  Memory::Outcome AllocateScratch(GlobalTransaction& transaction, Lane& lane, uint64_t bytes,
                                  uint64_t turn);
  // For a block in an arena of the lane, or `outside` them all.
  Memory::Outcome MakeRoom(GlobalTransaction& transaction, Lane& lane, uint64_t size, uint64_t turn,
                           bool outside = false);
  class Leavers;
  Memory::Outcome FindTarget(GlobalTransaction& transaction, Spill* spill, uint64_t turn);
  Memory::Outcome Evict(GlobalTransaction& transaction, int place, std::vector<Spill> spills);
  absl::Status CopySpill(const Spill& spill);
  void SpillDone(GlobalTransaction& transaction, const Spill& spill, const absl::Status& status);
  void SpillFailed(GlobalTransaction& transaction, const Spill& spill, const absl::Status& status);
  // The task is about to write: copies of its outputs that are in flight become stale.
  void ContentChanges(TenantTransaction& transaction, const Task& task);
  // Whether an upload is to write what is being copied: it is looked at again afterwards.
  bool WaitsForCopy(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void LogSpill(GlobalTransaction& transaction);

  void StartMove(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                 const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target);
  void MoveDone(GlobalTransaction& transaction, int device,
                const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target,
                uint64_t num_writes, absl::Status status);
  absl::Status RunMove(Lane& to, const store::Allocation& target,
                       const std::shared_ptr<store::Buffer>& buffer);
  // Copies a whole block, or `bytes` when `from` is null. Blocks; the caller has no transaction.
  static const void* BytesAtHand(const store::Buffer& buffer, const store::Allocation& to);
  bool StartPeerMove(TenantTransaction& transaction, Lane& to,
                     const std::shared_ptr<store::Buffer>& buffer, const store::Allocation& target,
                     std::function<void()> otherwise);
  absl::Status MapFor(Lane& lane, const std::shared_ptr<store::Arena>& arena, bool peer);
  // Whether `to` reads the memory of `from` by itself.
  bool IsPeer(int from, int to) const;
  // The lane's `worker` has copied from the arena of a peer: its mapping is good.
  static void NotePeerCopy(Lane& lane, const std::weak_ptr<broker::Worker>& worker,
                           const store::Arena& arena);
  absl::Status CopyFromPeer(Lane& from, const store::Allocation& source, Lane& to,
                            const store::Allocation& target, uint64_t size);
  // peer_reads.cc
  // Where a task on the lane finds the buffer: there, or, of some inputs, on a peer. Null: it has
  // to be brought first. Good as long as the replicas are as they are.
  const store::Allocation* BlockFor(const Task& task, const Use& use, const Lane& lane) const;
  bool ReadsInPlace(const Lane& lane, int place, const store::Allocation& block) const;
  bool HasBlocks(const Task& task, const Lane& lane) const;

  // lend.cc
  absl::StatusOr<std::shared_ptr<store::Arena>> MakeArenaAlone(Lane& lane, uint64_t size,
                                                               SteadyTime deadline);
  absl::Status FillAlone(Lane& lane, const std::shared_ptr<store::Buffer>& buffer,
                         const store::Allocation& target);
  absl::Status CopyWithin(Lane& lane, const store::Allocation& source,
                          const store::Allocation& target, uint64_t size, SteadyTime deadline);

  absl::Status CopyBlock(Lane* from, const store::Allocation& source, std::string_view bytes,
                         Lane& to, const store::Allocation& target, uint64_t size);

  // stream.cc
  void BeginStream(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                   const absl::Status& too_large);
  void StopStream(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                  absl::Status status);
  // The caller has no transaction.
  void StreamEnded(const std::shared_ptr<Task>& task, Lane& lane, absl::Status status);

  // turns.cc
  void NoteDemand(Lane& lane);
  void ChargeTurn(Lane& lane, double run_seconds);
  // dispatch.cc: to the tenant's account, what tasks reported, or what the worker's process used.
  void Charge(TenantTransaction& transaction, Lane& lane, double run_seconds);
  double Budget(Lane& lane);
  // Has Settle begin time slices of the device.
  static void GiveTurns(TenantTransaction& transaction, int device);
  void GiveTurnsNow(TenantTransaction& transaction, int device);
  FairShare::Flow* NextTurn(int device);
  void BeginTurn(Lane& lane);
  void WakeForTurns(int device, SteadyTime wake);

  // Has Settle send what the device queue may send now.
  static void Pump(TenantTransaction& transaction, Lane& lane);
  void PumpNow(TenantTransaction& transaction, Lane& lane);
  // Pump, unless the worker is busy and what is ready may wait for its next answer, or for what is
  // being accepted with it, to travel together: a packet costs more than a small operation.
  static void PumpSoon(TenantTransaction& transaction, Lane& lane);
  bool MayDispatch(const Task& task, const Lane& lane) const;
  bool PumpOnce(TenantTransaction& transaction, Lane& lane);
  double ExpectedSeconds(TenantTransaction& transaction, const Task& task, const Lane& lane) const;
  // As it is to be sent now, after its zero fills; the lane's until the next one.
  const wire::Task& BoundTask(const Task& task, Lane& lane) const;
  // `size`: what its ByteSizeLong has answered.
  void AddToPacket(TenantTransaction& transaction, const std::shared_ptr<Task>& task, Lane& lane,
                   const wire::Task& bound, size_t size);
  absl::Status BringWhatItNeeds(const Task& task, Lane& lane);
  absl::Status MapForTask(const Task& task, Lane& lane);
  absl::Status LoadModule(const std::shared_ptr<const broker::CompiledModule>& module, Lane& lane);

  // Text of a task in flight, for the client that reads its session's.
  static void Printed(TenantTransaction& transaction, Lane& lane, uint64_t sequence,
                      std::string_view text, uint64_t dropped_lines);
  void TasksDone(TenantTransaction& transaction, Lane& lane, const broker::Worker* worker,
                 absl::Span<const wire::TaskResult> results);
  void WorkerDied(GlobalTransaction& transaction, Lane& lane, const broker::Worker* worker,
                  const broker::WorkerDeath& death);
  void TellLoss(TenantTransaction& transaction, const Lane& lane, const broker::WorkerDeath& death,
                const std::shared_ptr<Task>& running);
  void TakeBack(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void LeaveQueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void ReleaseHeld(TenantTransaction& transaction, const Lane::InFlight& entry);

  // replay_code.cc
  bool HaveReplay(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  bool TakeReplay(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                  std::shared_ptr<const Replay::Ready> ready);
  ReplayTier TierOf(const Task& task, const std::string& target) const;
  void NoteReplayByBlocks(const Task& task, const std::string& target, int64_t elements);
  // Calls `done` once, in a transaction of the tenant, when all have ended: the modules, null where
  // `codes` has null, or the first error. `later`: nothing waits for them. `done` keeps the codes.
  using AllCompiled =
      std::function<void(TenantTransaction&,
                         std::vector<std::shared_ptr<const broker::CompiledModule>>, absl::Status)>;
  void CompileAll(const TenantId& tenant, const std::string& target,
                  std::vector<const wire::Code*> codes, bool later, AllCompiled done);

  // replay.cc
  absl::Status LoadReplay(const Task& task, Lane& lane);
  void ForgetReplays(Lane& lane);

  // stop.cc
  void Stop(TenantTransaction& transaction, const std::shared_ptr<Task>& task, absl::Status unrun,
            absl::Status running);
  void BeginGrace(Lane& lane);
  void GraceOver(Lane& lane, const std::shared_ptr<Task>& task);
  absl::Status LossOf(const Lane& lane, const Task& task, const broker::WorkerDeath& death,
                      bool faulted) const;

  // evacuation.cc
  void HealthChanged(GlobalTransaction& transaction, int device);
  void LeaveIllDevice(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  absl::Status NoDeviceFor(const Task& task) const;

  // recall.cc
  void EndUnrun(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                absl::Status status);
  void Recall(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
              absl::Status status);
  void TasksCancelled(TenantTransaction& transaction, Lane& lane, const broker::Worker* worker,
                      uint64_t sequence, bool taken);
  void RecallGranted(TenantTransaction& transaction, Lane& lane,
                     const std::vector<std::shared_ptr<Task>>& tasks);
  void RecallRefused(TenantTransaction& transaction,
                     const std::vector<std::shared_ptr<Task>>& tasks);
  void EndRecalled(TenantTransaction& transaction, Lane& lane,
                   const std::vector<std::shared_ptr<Task>>& tasks);
  void RecallUnanswered(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  bool GiveUp(TenantTransaction& transaction, Lane& lane,
              const std::vector<std::shared_ptr<Task>>& tasks);
  void NoteStart(TenantTransaction& transaction, Lane& lane);
  void TaskEnded(TenantTransaction& transaction, Lane& lane, const std::shared_ptr<Task>& task,
                 const wire::TaskResult& result);
  absl::Status TaskStatus(const Task& task, const Lane& lane, const wire::Status& status) const;

  void Complete(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                absl::Status status);
  void WakeWaiters(TenantTransaction& transaction);
  void BeginBodies(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void SetState(TenantTransaction& transaction, Task& task, TaskState state);

  // deadlines.cc
  void WatchDeadline(TenantTransaction& transaction, Task& task);
  void ForgetDeadline(TenantTransaction& transaction, const Task& task);
  void LookAtDeadlinesLater(TenantTransaction& transaction, int partition);
  // Called by the timer, which was asked to at `look`.
  void LookAtDeadlines(int partition, SteadyTime look);
  void DeadlinePassed(TenantTransaction& transaction, const std::shared_ptr<Task>& task);

  // worker_starts.cc
  void StartWorker(TenantTransaction& transaction, Lane& lane);
  void WaitForWorker(GlobalTransaction& transaction, Lane& lane);
  void BeginStarts(GlobalTransaction& transaction);
  void TryStart(GlobalTransaction& transaction, Lane& lane);
  void WorkerStarted(GlobalTransaction& transaction, Lane& lane,
                     std::shared_ptr<broker::Worker> worker, uint64_t record);
  void WorkerNotStarted(GlobalTransaction& transaction, Lane& lane, const absl::Status& why);
  void StartLacked(GlobalTransaction& transaction, Lane& lane, const absl::Status& why);
  void StartFailed(GlobalTransaction& transaction, Lane& lane, const absl::Status& why);
  void EndStart(GlobalTransaction& transaction, Lane& lane, const absl::Status& status);
  absl::Status NoRoomFor(const Lane& lane) const;
  static absl::Status CannotRunNow(const Lane& lane);
  void CanaryEnded(GlobalTransaction& transaction, int device);
  static void ForgetWorker(Lane& lane);
  static bool MayEndWorker(const Lane& lane);
  static bool IsIdle(const Lane& lane);
  bool GiveWay(GlobalTransaction& transaction, std::optional<int> device,
               const Lane* except = nullptr);
  void EndWorker(GlobalTransaction& transaction, Lane& lane);
  void AskToYield(GlobalTransaction& transaction);
  void YieldIfDone(GlobalTransaction& transaction, Lane& lane);
  void StopYielding(GlobalTransaction& transaction);
  bool StartsSlowDown(int device) const;
  void TendWorkers(GlobalTransaction& transaction);
  // Calls `take` with a turn until its outcome is not kLater, while other tasks may release memory.
  // Afterwards the lane of a device without host memory has a worker. The transaction ends while it
  // waits.
  absl::Status AwaitMemory(GlobalTransaction& transaction, Lane& lane, uint64_t size,
                           SteadyTime deadline,
                           absl::FunctionRef<Memory::Outcome(uint64_t turn)> take);
  // Until the lane has a worker, or none can be started, or the deadline.
  absl::Status AwaitWorker(GlobalTransaction& transaction, Lane& lane, SteadyTime deadline);
  // The lane's, with the arena mapped; null: there is none that lives.
  std::shared_ptr<broker::Worker> WorkerAtHand(Lane& lane,
                                               const std::shared_ptr<store::Arena>& arena);

  Core* const core_;
  Lanes lanes_;
  // Tasks by their deadlines, and in their order where these are equal.
  using Deadline = std::pair<SteadyTime, uint64_t>;
  static Deadline DeadlineKey(const Task& task) { return {task.deadline, task.order}; }
  using Deadlines = absl::btree_map<Deadline, Task*, std::less<Deadline>,
                                    PoolAllocator<std::pair<const Deadline, Task*>>>;
  // State of the tenants of one partition.
  struct alignas(64) Partition {
    RunTimeModel model;
    std::map<TenantId, int> unfinished;
    std::vector<std::shared_ptr<Task>> unfinished_tasks;  // in no order
    std::atomic<int> num_unfinished{0};                   // their number; any thread reads it
    Deadlines deadlines;                                  // those of unfinished_tasks
    SteadyTime next_look = SteadyTime::InfiniteFuture();  // when the timer looks at them
    uint64_t last_order = 0;                              // Task::order of the newest task
  };
  PerPartition<Partition> partitions_;
  Partition& Mine(TenantTransaction& transaction, const TenantId& tenant) {
    return partitions_.Of(transaction, tenant);
  }
  const Partition& Mine(TenantTransaction& transaction, const TenantId& tenant) const {
    return partitions_.Of(transaction, tenant);
  }
  Memory memory_;
  HealthWatch health_;
  WorkerSeats seats_;
  WorkerCosts costs_;
  bool any_yielding_ = false;  // lanes, perhaps
  // The used memory of each device before its first worker.
  std::vector<std::optional<int64_t>> device_used_before_;
  SteadyTime next_start_look_ =
      SteadyTime::InfiniteFuture();  // when the timer looks at those in line
  // Of one device: whose turn it is. The mutex is taken under any other lock of ours.
  struct alignas(64) Turns {
    explicit Turns(FairShare::Options options) : share(options) {}
    absl::Mutex mutex;
    FairShare share ABSL_GUARDED_BY(mutex);
    SteadyTime wake ABSL_GUARDED_BY(mutex) =
        SteadyTime::InfiniteFuture();  // when the timer will look
  };
  std::deque<Turns> turns_;
  void AddUnfinished(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void RemoveUnfinished(TenantTransaction& transaction, Task& task);
  static void NoteUnfinished(Partition& partition);
  std::atomic<unsigned> rotation_{0};  // spreads equal choices over the devices

  // State of no tenant: it changes in global transactions and is read in any. A tenant's
  // transaction changes what is atomic, and what a Move has of its buffer's tenant.
  struct Move {
    std::vector<std::shared_ptr<Task>> waiters;
    bool stale = false;                          // the content changed since the copy began
    std::vector<std::shared_ptr<Task>> writers;  // uploads that wait until it is over
  };
  // Copies in flight, by buffer and target: moves to a device for tasks that wait, and evictions.
  std::map<std::pair<store::Buffer*, int>, Move> moves_;
  // Evictions, by the place that the buffers leave.
  struct Spilling {
    int under_way = 0;
    bool failed = false;      // the last ones did; reported once, by the next MakeRoom
    SteadyTime closed_until;  // writing there failed: nothing is sent there before this
  };
  std::vector<Spilling> spilling_;
  SpillSample spilled_;
  int64_t logged_spilled_bytes_ = 0;
  SteadyTime next_spill_log_;
  std::atomic<uint64_t> memory_changes_{0};  // calls of MemoryChanged with waiters
  uint64_t last_memory_turn_ = 0;            // the latest Task::memory_turn
  std::atomic<int> num_memory_waiters_{0};   // tasks in lanes' queues, and threads
  std::atomic<bool> retry_memory_soon_{false};
  bool ending_ = false;
  std::set<std::pair<int, int>> broken_links_;  // from, to: copies failed there
};

// While it lives the lane's worker does not end for another's. No transaction is open when it
// is made or destroyed.
class WorkerInUse {
 public:
  WorkerInUse(Core* core, Lane* lane) : core_(core), lane_(lane) {
    TenantTransaction transaction(*core_, lane_->tenant);
    ++lane_->num_copies;
  }
  ~WorkerInUse() {
    TenantTransaction transaction(*core_, lane_->tenant);
    --lane_->num_copies;
  }
  WorkerInUse(const WorkerInUse&) = delete;
  WorkerInUse& operator=(const WorkerInUse&) = delete;

 private:
  Core* const core_;
  Lane* const lane_;
};

}  // namespace stride::scheduler
