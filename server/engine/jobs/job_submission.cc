#include "server/engine/jobs/job_submission.h"

#include <climits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/base/random_id.h"
#include "server/engine/jobs/session_end.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/ops/plan.h"
#include "server/session/resource_name.h"

namespace stride::engine {

absl::Status JobSubmission::SubmitAll(const JobPtr& job, const v1::Job& asked,
                                      SteadyTime deadline) {
  std::string id = absl::StrCat("job-", RandomId(24));
  job->session = absl::StrCat("sessions/", id);
  job->gate = MakePooled<Task>();
  job->gate->tenant = job->tenant;
  job->gate->label = "job";
  job->gate->options.host_access = true;
  {
    GlobalTransaction transaction(*core_);
    auto session =
        core_->catalogue.CreateSession(transaction, job->tenant, id, absl::Hours(1), core_->Now(),
                                       INT_MAX);  // the quota `jobs` bounds them
    if (!session.ok()) return session.status();
    ++(*session)->num_pins;
    core_->journal_writer->Added(transaction, **session);  // as a job's
    if (absl::Status status = scheduler_->Enqueue(transaction, job->gate); !status.ok())
      return status;
  }
  for (int i = 0; i < asked.operations_size(); ++i) {
    Operations::Extras extras{
        .observer = tracker_->ObserverOf(job), .after = job->gate, .priority = asked.priority()};
    auto accepted =
        operations_->Accept(job->tenant, job->session, asked.operations(i), deadline, extras);
    if (!accepted.ok())
      return PrefixField(accepted.status(), absl::StrCat("job.operations[", i, "]."));
    std::vector<std::shared_ptr<Task>>& others =
        accepted->waits_for_helpers ? job->tasks : job->helpers;
    others.insert(others.end(), accepted->helpers.begin(), accepted->helpers.end());
    job->tasks.push_back(accepted->task);
    job->operations.resize(job->tasks.size(), i);
    const ops::OutputList outputs = ops::OutputsOf(asked.operations(i));
    for (size_t j = 0; j < accepted->outputs.size(); ++j) {
      const std::shared_ptr<session::Array>& output = accepted->outputs[j];
      if (!output->name.is_named()) continue;
      job->named_results.push_back(output);
      if (!outputs[j]->existing()) job->made.push_back(output);
    }
  }
  return absl::OkStatus();
}

void JobSubmission::Open(const TenantId& tenant, const std::shared_ptr<Task>& gate) {
  TenantTransaction transaction(*core_, tenant);
  scheduler_->Complete(transaction, gate, absl::OkStatus());
}

void JobSubmission::Abandon(const JobPtr& job) {
  {
    TenantTransaction transaction(*core_, job->tenant);
    // The job was never accepted, so no result is kept.
    for (const auto& task : job->tasks) {
      if (task == nullptr) continue;
      task->options.of_job = false;
      core_->journal_writer->Erase(transaction, job->tenant, recovery::Kind::kTaskResult,
                                   task->id);  // the record of a task that ended at once
    }
    const absl::Status why = absl::CancelledError("the job was not accepted");
    for (const auto& task : job->helpers) scheduler_->Complete(transaction, task, why);
    for (const auto& task : job->tasks) {
      if (task != nullptr) scheduler_->Complete(transaction, task, why);
    }
    if (job->gate != nullptr) scheduler_->Complete(transaction, job->gate, absl::OkStatus());
  }
  {
    // Before its session: a successor knows by that what is still to be
    // abandoned.
    GlobalTransaction transaction(*core_);
    for (const auto& array : job->made) {
      auto name = session::ParseArrayName(array->name.ToString(), "name");
      if (name.ok())
        core_->catalogue.RemoveArray(transaction, job->tenant, *name, core_->Now()).IgnoreError();
    }
  }
  EndSession(core_, scheduler_, job->tenant, job->session).IgnoreError();
}

}  // namespace stride::engine
