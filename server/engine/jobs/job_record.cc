#include "server/engine/jobs/job_record.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/persistence/answer.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/persistence/job_codec.h"
#include "server/engine/persistence/record_convert.h"
#include "server/recovery/records.pb.h"
#include "server/session/control_cost.h"

namespace stride::engine {
namespace {

// How far one task brings its job: in its worker's queue it still waits for its
// turn.
v1::Job::State StateOf(const Task& task) {
  bool succeeded = task.state == TaskState::kDone && task.result.ok();
  if (succeeded || task.timeline.begin_time != SteadyTime()) return v1::Job::STATE_RUNNING;
  bool placed = task.state == TaskState::kPreparing || task.state == TaskState::kDispatched;
  return placed ? v1::Job::STATE_SCHEDULED : v1::Job::STATE_QUEUED;
}

}  // namespace

void JobView::Fit(v1::Job* job) {
  static const OmittedFields kLarge({"operations", "timelines", "results", "error"});
  kLarge.Fit(job);
}

void JobView::WriteTo(v1::Job* job) const {
  *job = *asked;
  job->MergeFrom(*now);
  Fit(job);
}

v1::Job JobView::Write() const {
  v1::Job job;
  WriteTo(&job);
  return job;
}

int64_t JobRecord::Cost() const {
  int64_t bytes = session::kJobControlBytes + session::ControlBytesOf(*asked);
  for (const Event& event : events) bytes += session::ControlBytesOf(*event.now);
  return bytes;
}

int64_t JobRecord::WorkCost() const {
  return asked->operations_size() * session::kJobOperationControlBytes;
}

void JobRecord::ReleaseWork() {
  tasks = {};
  operations = {};
  helpers = {};
  named_results = {};
  made = {};
  gate = nullptr;
}

bool IsFinal(v1::Job::State state) {
  return state == v1::Job::STATE_SUCCEEDED || state == v1::Job::STATE_FAILED ||
         state == v1::Job::STATE_CANCELLED;
}

void KeepWhatChanges(v1::Job* job) {
  v1::Job now;
  now.set_state(job->state());
  if (job->has_error()) now.mutable_error()->Swap(job->mutable_error());
  if (job->has_end_time()) now.mutable_end_time()->Swap(job->mutable_end_time());
  now.mutable_timelines()->Swap(job->mutable_timelines());
  now.mutable_results()->Swap(job->mutable_results());
  job->Swap(&now);
}

void KeepWhatWasAsked(v1::Job* job) {
  job->clear_state();
  job->clear_error();
  job->clear_end_time();
  job->clear_timelines();
  job->clear_results();
  job->clear_omitted();
}

JobProgress ProgressOf(TenantTransaction& transaction, const JobRecord& job) {
  JobProgress seen;
  v1::Job::State state = std::max(job.state(), v1::Job::STATE_QUEUED);
  for (const auto& helper : job.helpers) state = std::max(state, StateOf(*helper));
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const auto& task = job.tasks[i];
    if (task == nullptr) continue;
    state = std::max(state, StateOf(*task));
    seen.all_done = seen.all_done && task->state == TaskState::kDone;
    if (task->state != TaskState::kDone || task->result.ok()) continue;
    // Reports the first cause. Tasks cancelled because of it may come before
    // it.
    if (seen.error.ok() || (absl::IsCancelled(seen.error) && !absl::IsCancelled(task->result)))
      seen.error =
          PrefixField(task->result, absl::StrCat("job.operations[", job.operations[i], "]."));
  }
  if (seen.all_done) state = seen.error.ok() ? v1::Job::STATE_SUCCEEDED : v1::Job::STATE_FAILED;
  if (seen.all_done && job.cancel_requested && absl::IsCancelled(seen.error))
    state = v1::Job::STATE_CANCELLED;
  seen.state = state;
  return seen;
}

v1::Job DescribeWork(TenantTransaction& transaction, const Core& core, const JobRecord& job) {
  v1::Job work;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const auto& task = job.tasks[i];
    if (task != nullptr && task->state == TaskState::kDone && job.IsLast(i))
      *work.add_timelines() = DescribeTimeline(core, *task);
  }
  for (const auto& array : job.named_results) *work.add_results() = Describe(core, *array);
  return work;
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

SteadyTime ToSteadyTime(const google::protobuf::Timestamp& time) {
  return FromWallTime(absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()));
}

void WriteRecord(const JobRecord& job, recovery::JobRecord* out) {
  out->set_tenant(job.tenant.value);
  out->set_id(job.id);
  out->set_session(job.session);
  // The concatenation of the two serialized messages parses as one job.
  job.asked->AppendToString(out->mutable_job());
  job.now->AppendToString(out->mutable_job());
  for (const auto& task : job.tasks) out->add_tasks(task != nullptr ? task->id : 0);
  out->mutable_operations()->Add(job.operations.begin(), job.operations.end());
  for (const auto& array : job.named_results) out->add_named_results(array->record);
  out->set_request_id(job.request_id);
  out->set_cancel_requested(job.cancel_requested);
  out->set_durable(job.durable);
  out->set_final_time(ToRecord(job.final_time));
  out->set_num_events(job.num_events());
  if (job.events.empty()) return;
  // Its job is the record's.
  v1::WatchJobResponse event;
  event.set_sequence(job.events.back().sequence);
  SetTimestamp(DateOf(job.events.back().time), event.mutable_time());
  event.SerializeToString(out->mutable_last_event());
}

JobPtr ReadRecord(const recovery::JobRecord& record) {
  auto job = std::make_shared<JobRecord>();
  job->tenant = TenantId{record.tenant()};
  job->id = record.id();
  job->session = record.session();
  auto asked = std::make_shared<v1::Job>();
  asked->ParseFromString(record.job());
  auto now = std::make_shared<v1::Job>(*asked);
  KeepWhatChanges(now.get());
  KeepWhatWasAsked(asked.get());
  job->asked = std::move(asked);
  job->now = std::move(now);
  job->request_id = record.request_id();
  job->cancel_requested = record.cancel_requested();
  job->final_time = TimeFrom(record.final_time(), SteadyTime::InfiniteFuture());
  v1::WatchJobResponse last;
  if (record.num_events() > 0 && last.ParseFromString(record.last_event())) {
    job->num_forgotten_events = record.num_events() - 1;
    job->events.push_back({last.sequence(), ToSteadyTime(last.time()), job->now});
  }
  return job;
}

recovery::DurableJobRecord AcceptedOf(const JobRecord& job) {
  recovery::DurableJobRecord accepted;
  ToRecord(*job.asked, &accepted);
  accepted.set_tenant(job.tenant.value);
  accepted.set_id(job.id);
  accepted.set_request_id(job.request_id);
  return accepted;
}

std::string EndOf(const JobRecord& job) {
  v1::Job end = *job.now;
  const v1::Job& asked = *job.asked;
  end.set_name(asked.name());
  end.set_label(asked.label());
  end.set_priority(asked.priority());
  if (asked.has_timeout()) *end.mutable_timeout() = asked.timeout();
  *end.mutable_create_time() = asked.create_time();
  return end.SerializeAsString();
}

}  // namespace stride::engine
