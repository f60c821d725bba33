#include "tests/support/fake_jobs.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::testing {

absl::StatusOr<v1::Job> FakeJobs::Create(const TenantId& tenant,
                                         const v1::CreateJobRequest& request) {
  std::lock_guard lock(mutex_);
  v1::Job job = request.job();
  job.set_name(absl::StrCat("tenants/", tenant.value, "/jobs/", request.job_id()));
  job.set_state(v1::Job::STATE_QUEUED);
  jobs_[job.name()] = job;
  return job;
}

absl::StatusOr<v1::Job> FakeJobs::Get(const TenantId&, const std::string& name) {
  std::lock_guard lock(mutex_);
  auto it = jobs_.find(name);
  if (it == jobs_.end()) return NotFound(v1::ERROR_REASON_JOB_NOT_FOUND, "job", name);
  return it->second;
}

absl::StatusOr<v1::ListJobsResponse> FakeJobs::List(const TenantId&, const v1::ListJobsRequest&) {
  std::lock_guard lock(mutex_);
  v1::ListJobsResponse response;
  for (const auto& [name, job] : jobs_) *response.add_jobs() = job;
  return response;
}

absl::StatusOr<v1::Job> FakeJobs::Cancel(const TenantId& tenant, const std::string& name) {
  auto job = Get(tenant, name);
  if (!job.ok()) return job;
  std::lock_guard lock(mutex_);
  jobs_[name].set_state(v1::Job::STATE_CANCELLED);
  changed_.notify_all();
  return jobs_[name];
}

absl::Status FakeJobs::Delete(const TenantId&, const std::string& name) {
  std::lock_guard lock(mutex_);
  if (jobs_.erase(name) == 0) return NotFound(v1::ERROR_REASON_JOB_NOT_FOUND, "job", name);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::WatchJobResponse>> FakeJobs::NextEvents(const TenantId& tenant,
                                                                       const std::string& name,
                                                                       uint64_t after_sequence,
                                                                       SteadyTime deadline) {
  auto job = Get(tenant, name);
  if (!job.ok()) return job.status();
  std::unique_lock lock(mutex_);
  std::vector<v1::WatchJobResponse> events;
  auto add = [&](uint64_t sequence, v1::Job::State state) {
    events.emplace_back();
    events.back().set_sequence(sequence);
    events.back().set_state(state);
  };
  auto cancelled = [&] { return jobs_[name].state() == v1::Job::STATE_CANCELLED; };
  if (after_sequence == 0) {
    add(1, v1::Job::STATE_QUEUED);
  } else if (after_sequence == 1 && changed_.wait_until(lock, deadline.ToChrono(), cancelled)) {
    add(2, v1::Job::STATE_CANCELLED);
  }
  return events;
}

}  // namespace stride::testing
