#include "server/engine/jobs/job_table.h"

#include <memory>

#include "server/engine/arrays/array_persister.h"
#include "server/engine/persistence/journal_writer.h"

namespace stride::engine {

absl::StatusOr<JobPtr> JobTable::Find(const Partition& mine, const TenantId& tenant,
                                      const std::string& name) {
  const auto id = kJobs.IdOf(name, tenant);
  if (!id.ok()) return id.status();
  const JobPtr* const job = mine.jobs.Find(tenant, *id);
  if (job == nullptr) return kJobs.NotFound(name);
  return *job;
}

JobPtr JobTable::FindRequest(const Partition& mine, const TenantId& tenant,
                             const std::string& request_id) {
  const std::string* const id = mine.requests.Find(tenant, request_id);
  const JobPtr* const job = id != nullptr ? mine.jobs.Find(tenant, *id) : nullptr;
  return job != nullptr ? *job : nullptr;
}

void JobTable::Add(Partition& mine, const JobPtr& job) {
  mine.jobs.Set(job->tenant, job->id, job);
  if (!job->request_id.empty()) mine.requests.Set(job->tenant, job->request_id, job->id);
}

void JobTable::NoteFinished(Partition& mine, JobRecord& job) {
  job.control.Set(job.Cost());
  job.control.MakeDroppable();
  mine.finished.emplace(job.tenant, job.final_time, job.id);
}

void JobTable::Drop(Partition& mine, const JobPtr& dropped) {
  const JobPtr job = dropped;  // which may lie where it is erased
  {
    GlobalTransaction transaction(*core_);
    if (core_->array_persister != nullptr)
      core_->array_persister->Forgotten(transaction, job->session, job->durable);
    if (job->record != 0)
      core_->journal_writer->Erase(transaction, job->tenant, recovery::Kind::kJob, job->record);
  }
  mine.finished.erase({job->tenant, job->final_time, job->id});
  // Unless that request has made another job since.
  const std::string* const id = mine.requests.Find(job->tenant, job->request_id);
  if (id != nullptr && *id == job->id) mine.requests.Erase(job->tenant, job->request_id);
  mine.jobs.Erase(job->tenant, job->id);
}

void JobTable::Retire(SteadyTime now) {
  for (Partition& mine : partitions_) {
    absl::MutexLock lock(&mine.mutex);
    for (auto it = mine.finished.begin(); it != mine.finished.end();) {
      const TenantId tenant = std::get<0>(*it);
      // The tenant's first ended first.
      while (it != mine.finished.end() && std::get<0>(*it) == tenant &&
             std::get<1>(*it) + core_->options.job_retention < now) {
        Drop(mine, *mine.jobs.Find(tenant, std::get<2>(*it)));
        it = mine.finished.lower_bound({tenant, SteadyTime::InfinitePast(), ""});
      }
      // The next tenant's; no id begins with this character.
      it = mine.finished.upper_bound({tenant, SteadyTime::InfiniteFuture(), "\x7f"});
    }
  }
}

void JobTable::MakeRoom(const TenantId& tenant) {
  Partition& mine = Of(tenant);
  absl::MutexLock lock(&mine.mutex);
  core_->accounts->ControlOf(tenant)->RoomMade();
  MakeRoom(mine, tenant, 0);
}

void JobTable::MakeRoom(Partition& mine, const TenantId& tenant, int64_t bytes) {
  const std::shared_ptr<session::ControlAccount> account = core_->accounts->ControlOf(tenant);
  while (account->Excess(bytes) > 0) {
    auto first = mine.finished.lower_bound({tenant, SteadyTime::InfinitePast(), ""});
    if (first == mine.finished.end() || std::get<0>(*first) != tenant) return;
    Drop(mine, *mine.jobs.Find(tenant, std::get<2>(*first)));
  }
}

}  // namespace stride::engine
