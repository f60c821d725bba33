#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_time.h"
#include "server/base/stripe.h"
#include "server/scheduler/core.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/service/job_service.h"

namespace stride::recovery {
class JobRecord;
class TaskResultRecord;
}  // namespace stride::recovery

namespace stride::durable {
struct JobRow;
}

namespace stride::scheduler {

struct AcceptedJob;

// Work that outlives its client: a job's operations are tasks of a session that belongs to the job.
// Thread-safe; its own lock is taken before a transaction begins.
class Jobs : public JobService {
 public:
  Jobs(Core* core, Scheduler* scheduler, Operations* operations)
      : core_(core), scheduler_(scheduler), operations_(operations) {}

  absl::StatusOr<v1::Job> Create(const TenantId& tenant,
                                 const v1::CreateJobRequest& request) override;
  absl::StatusOr<v1::Job> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListJobsResponse> List(const TenantId& tenant,
                                            const v1::ListJobsRequest& request) override;
  absl::StatusOr<v1::Job> Cancel(const TenantId& tenant, const std::string& name) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<std::vector<v1::WatchJobResponse>> NextEvents(const TenantId& tenant,
                                                               const std::string& name,
                                                               uint64_t after_sequence,
                                                               SteadyTime deadline) override;

  // State from an earlier daemon's journal. Its unfinished tasks are restored and not resumed yet.
  // The caller has no transaction.
  struct Restored {
    const std::map<uint64_t, std::shared_ptr<Task>>& unfinished;
    const std::map<uint64_t, recovery::TaskResultRecord>& results;
    const std::map<uint64_t, std::shared_ptr<session::Array>>& arrays;
  };
  void Restore(uint64_t id, const recovery::JobRecord& record, const Restored& things);
  // Restores a job from its row after a reboot. An ended job is known; others run again from their
  // requests where possible, and fail otherwise. Call in the order of acceptance. The caller has no
  // transaction.
  void RestoreFromDisk(const durable::JobRow& row);

  // Updates all jobs. The caller has no transaction.
  void UpdateAll();

  // Forgets jobs that have been final for EngineOptions::job_retention.
  void Retire(SteadyTime now);
  // Drops the tenant's final jobs, the first to end first, until the tenant is within its quota of
  // control bytes or has no final job. The caller has no transaction.
  void MakeRoom(const TenantId& tenant);

 private:
  struct Record {
    TenantId tenant;
    std::string session;  // `sessions/{id}`, the job's own
    // The job is these two messages together. A message never changes; `now` is replaced. Readers
    // of the job copy the pointers, and read without a lock.
    std::shared_ptr<const v1::Job> asked;  // fields that never change
    std::shared_ptr<const v1::Job> now =
        std::make_shared<v1::Job>();  // the rest, as of the last event
    v1::Job::State state() const { return now->state(); }
    const std::string& name() const { return asked->name(); }
    // One task for each operation; null: a view. A program that runs step by step has all of its
    // tasks, its last one last.
    std::vector<std::shared_ptr<Task>> tasks;
    std::vector<int> operations;                 // each task's operation, by index
    std::vector<std::shared_ptr<Task>> helpers;  // copies that operations need
    std::vector<std::shared_ptr<session::Array>> named_results;
    std::vector<std::shared_ptr<session::Array>> made;  // named results that did not exist before
    std::shared_ptr<Task> gate;  // holds the tasks back until all operations are accepted
    // Whether a look at the tasks is requested and has not begun.
    const std::shared_ptr<std::atomic<bool>> look_asked = std::make_shared<std::atomic<bool>>();
    struct Event {
      uint64_t sequence = 0;
      SteadyTime time;
      std::shared_ptr<const v1::Job> now;
    };
    std::vector<Event> events;
    uint64_t num_forgotten_events = 0;  // events before `events`, reported by an earlier daemon
    std::string id, request_id;
    uint64_t record = 0;          // id in the journal; 0: not accepted yet, or nothing is recorded
    uint64_t durable = 0;         // id of its row on disk; 0: none
    uint64_t durable_number = 0;  // number of the row's write, to wait for
    std::shared_ptr<const void> place;  // place in the tenant's quota, until the job is final
    session::ControlCharge control;
    bool cancel_requested = false;
    SteadyTime final_time = SteadyTime::InfiniteFuture();
  };
  using RecordPtr = std::shared_ptr<Record>;
  // A job for an answer: copied under our lock, written without it.
  struct View {
    std::shared_ptr<const v1::Job> asked, now;
    void WriteTo(v1::Job* job) const;
    v1::Job Write() const;  // no larger than an answer may be
  };
  static View ViewOf(const Record& record) { return {record.asked, record.now}; }

  // The jobs of one partition's tenants. Its mutex, "our lock" below, is held while a job's
  // operations are accepted. Transactions begin under it.
  struct alignas(64) Stripe {
    absl::Mutex mutex;
    std::map<std::pair<TenantId, std::string>, RecordPtr> jobs ABSL_GUARDED_BY(mutex);
    std::map<std::pair<TenantId, std::string>, std::string> requests
        ABSL_GUARDED_BY(mutex);  // request_id -> job id
    // Final jobs, by the time of their end.
    std::set<std::tuple<TenantId, SteadyTime, std::string>> finished ABSL_GUARDED_BY(mutex);
  };

  absl::StatusOr<View> Accept(const TenantId& tenant, const v1::CreateJobRequest& request,
                              uint64_t* durable_number);
  absl::StatusOr<View> Cancel(const TenantId& tenant, const std::string& name,
                              uint64_t* durable_number);
  absl::Status Rerun(const RecordPtr& record, const durable::JobRow& row);
  void EndUnrun(const RecordPtr& record, const absl::Status& status);
  void RestoreRow(GlobalTransaction& transaction, Record& record, uint64_t row);
  static AcceptedJob AcceptedOf(const Record& record);
  // Writes the job to disk, where jobs are kept there. Caller holds our lock and has no
  // transaction: one begins after the long part.
  void Keep(Record& record);
  static absl::StatusOr<RecordPtr> Find(const Stripe& stripe, const TenantId& tenant,
                                        const std::string& name)
      ABSL_SHARED_LOCKS_REQUIRED(stripe.mutex);
  absl::Status SubmitAll(const RecordPtr& record, const v1::Job& job, SteadyTime deadline);
  std::function<void(TaskState)> ObserverOf(const RecordPtr& record);
  void Abandon(const RecordPtr& record);
  void Save(TenantTransaction& transaction, const Record& record);
  void Forget(GlobalTransaction& transaction, const Record& record);
  // Caller holds our lock.
  void CancelAll(const Record& record);
  // Looks at the tasks, and adds an event when the job's state has changed. Caller holds our lock.
  void Update(const RecordPtr& record);
  // The progress of a job's tasks. Caller holds our lock, here and in the next three functions.
  struct Progress {
    v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
    absl::Status error;
    bool all_done = true;
  };
  Progress Look(TenantTransaction& transaction, const Record& record) const;
  // The job's current timelines and results.
  v1::Job DescribeWork(TenantTransaction& transaction, const Record& record) const;
  void Advance(TenantTransaction& transaction, Record& record, const Progress& seen);
  // `now`: the job in its new state.
  void AddEvent(TenantTransaction& transaction, Record& record, v1::Job now);
  // Moves the text that the job's kernels printed into `work`.
  void AddPrinted(const Record& record, v1::Job* work) const;
  // Part of Update. `work`: from DescribeWork.
  void End(Record& record, const Progress& seen, v1::Job work);
  // Releases the tasks and arrays of a job that has ended.
  static void LetGo(Record& record);
  // The control bytes that the job costs.
  static int64_t CostOf(const Record& record);
  void NoteFinished(Stripe& mine, Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mine.mutex);
  // Forgets final jobs, the first to end first, until `bytes` more would be within the quota.
  void MakeRoom(Stripe& mine, const TenantId& tenant, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mine.mutex);
  void Drop(Stripe& mine, const RecordPtr& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mine.mutex);
  static std::string EndOf(const Record& record);
  // Whether this is the last task of its operation.
  static bool IsLast(const Record& record, size_t task);
  // Reports the end to EngineOptions::job_ended. Caller holds our lock.
  void TellEnd(const Record& record, const absl::Status& outcome) const;
  static bool IsFinal(v1::Job::State state);

  Core* const core_;
  Scheduler* const scheduler_;
  Operations* const operations_;
  Stripe& StripeFor(const TenantId& tenant) { return stripes_[StripeOf(tenant)]; }
  std::array<Stripe, kNumStripes> stripes_;
};

}  // namespace stride::scheduler
