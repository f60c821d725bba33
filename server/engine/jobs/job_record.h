#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/task.h"
#include "server/engine/persistence/resource_kind.h"
#include "server/session/array.h"
#include "server/session/control_account.h"
#include "stride/v1/job_service.pb.h"

namespace stride::recovery {
class DurableJobRecord;
class JobRecord;
}  // namespace stride::recovery

namespace stride::engine {

inline constexpr ResourceKind kJobs{
    .noun = "job", .collection = "jobs", .not_found = v1::ERROR_REASON_JOB_NOT_FOUND};

// A job for an answer: two messages that never change, read without a lock.
struct JobView {
  std::shared_ptr<const v1::Job> asked, now;
  void WriteTo(v1::Job* job) const;
  v1::Job Write() const;  // no larger than an answer may be
  // Leaves fields out of a job that is larger.
  static void Fit(v1::Job* job);
};

// A job and its work. The mutex of its partition of the JobTable guards it, and
// its tenant's transactions guard its tasks and arrays.
struct JobRecord {
  struct Event {
    uint64_t sequence = 0;
    SteadyTime time;
    std::shared_ptr<const v1::Job> now;
  };

  TenantId tenant;
  std::string session;  // `sessions/{id}`, the job's own
  // The job is these two messages together. A message never changes; `now` is
  // replaced.
  std::shared_ptr<const v1::Job> asked;                              // fields that never change
  std::shared_ptr<const v1::Job> now = std::make_shared<v1::Job>();  // the rest, at the last event
  // One task for each operation; null: a view. A program that runs step by step
  // has all of its tasks, its last one last.
  std::vector<std::shared_ptr<Task>> tasks;
  std::vector<int> operations;                 // each task's operation, by index
  std::vector<std::shared_ptr<Task>> helpers;  // copies that operations need
  std::vector<std::shared_ptr<session::Array>> named_results;
  std::vector<std::shared_ptr<session::Array>> made;  // named results that did not exist before
  std::shared_ptr<Task> gate;  // holds the tasks back until all operations are accepted
  // Whether a look at the tasks is requested and has not begun.
  const std::shared_ptr<std::atomic<bool>> look_asked = std::make_shared<std::atomic<bool>>();
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

  v1::Job::State state() const { return now->state(); }
  const std::string& name() const { return asked->name(); }
  JobView view() const { return {asked, now}; }
  uint64_t num_events() const { return num_forgotten_events + events.size(); }
  // Control bytes of what is kept once it has ended.
  int64_t Cost() const;
  // Control bytes of its operations until then.
  int64_t WorkCost() const;
  // Whether this is the last task of its operation. The tasks of an operation
  // are adjacent.
  bool IsLast(size_t task) const {
    return task + 1 == tasks.size() || operations[task + 1] != operations[task];
  }
  // Releases tasks and arrays. Tasks hold the arrays that they worked on, and
  // results are to go when their names do.
  void ReleaseWork();
};
using JobPtr = std::shared_ptr<JobRecord>;

bool IsFinal(v1::Job::State state);

// Takes out of a whole job all that never changes, or all that changes.
void KeepWhatChanges(v1::Job* job);
void KeepWhatWasAsked(v1::Job* job);

// The progress of a job's tasks.
struct JobProgress {
  v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
  absl::Status error;
  bool all_done = true;
};
// The state never goes back, though work that a worker's death undid may wait
// again.
JobProgress ProgressOf(TenantTransaction& transaction, const JobRecord& job);
// The job's current timelines and results.
v1::Job DescribeWork(TenantTransaction& transaction, const Core& core, const JobRecord& job);

absl::Duration ToDuration(const google::protobuf::Duration& duration);
SteadyTime ToSteadyTime(const google::protobuf::Timestamp& time);

// --- journal and disk ---
void WriteRecord(const JobRecord& job, recovery::JobRecord* out);
// Reads all but tasks, arrays and ids.
JobPtr ReadRecord(const recovery::JobRecord& record);
recovery::DurableJobRecord AcceptedOf(const JobRecord& job);
std::string EndOf(const JobRecord& job);

}  // namespace stride::engine
