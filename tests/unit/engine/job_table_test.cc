// The table of jobs alone: names, requests, retention and room.
#include "server/engine/jobs/job_table.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/persistence/journal_writer.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;

const TenantId kA{"a"}, kB{"b"};

class JobTableTest : public ::testing::Test {
 protected:
  ~JobTableTest() override { core_.Stop(); }

  static EngineOptions Options() {
    EngineOptions options;
    options.job_retention = absl::Seconds(10);
    return options;
  }
  static SteadyTime At(int seconds) { return SteadyTime() + absl::Seconds(seconds); }
  JobPtr Add(const TenantId& tenant, const std::string& id, const std::string& request = "") {
    auto job = std::make_shared<JobRecord>();
    auto asked = std::make_shared<v1::Job>();
    asked->set_name(kJobs.NameOf(tenant, id));
    job->asked = std::move(asked);
    job->tenant = tenant;
    job->id = id;
    job->request_id = request;
    job->control = core_.accounts->ControlOf(tenant)->Hold(job->Cost());
    JobTable::Partition& mine = table_.Of(tenant);
    absl::MutexLock lock(&mine.mutex);
    JobTable::Add(mine, job);
    return job;
  }
  void Finish(const JobPtr& job, int seconds) {
    job->final_time = At(seconds);
    JobTable::Partition& mine = table_.Of(job->tenant);
    absl::MutexLock lock(&mine.mutex);
    JobTable::NoteFinished(mine, *job);
  }
  std::vector<std::string> Ids(const TenantId& tenant) {
    std::vector<std::string> ids;
    JobTable::Partition& mine = table_.Of(tenant);
    absl::MutexLock lock(&mine.mutex);
    mine.jobs.ForEach(tenant, [&](const std::string& id, const JobPtr&) { ids.push_back(id); });
    return ids;
  }
  std::string RequestedBy(const TenantId& tenant, const std::string& request) {
    JobTable::Partition& mine = table_.Of(tenant);
    absl::MutexLock lock(&mine.mutex);
    const JobPtr job = JobTable::FindRequest(mine, tenant, request);
    return job != nullptr ? job->id : "";
  }
  void Drop(const JobPtr& job) {
    JobTable::Partition& mine = table_.Of(job->tenant);
    absl::MutexLock lock(&mine.mutex);
    table_.Drop(mine, job);
  }

  stride::testing::FakeBroker broker_{{stride::testing::HostDevice(0)}};
  Core core_{Options(), &broker_};
  JournalWriter journal_writer_{&core_};
  JobTable table_{&core_};
};

TEST_F(JobTableTest, RequestFindsItsLatestJob) {
  const JobPtr first = Add(kA, "first", "r");
  EXPECT_EQ(RequestedBy(kA, "r"), "first");
  EXPECT_EQ(RequestedBy(kB, "r"), "");
  EXPECT_EQ(RequestedBy(kA, ""), "");
  Finish(first, 1);
  const JobPtr second = Add(kA, "second", "r");
  Drop(first);
  EXPECT_EQ(RequestedBy(kA, "r"), "second") << "the request made another job since";
  Finish(second, 1);
  Drop(second);
  EXPECT_EQ(RequestedBy(kA, "r"), "");
}

TEST_F(JobTableTest, NamesOfOtherTenantsAreNotFound) {
  Add(kA, "j");
  JobTable::Partition& mine = table_.Of(kA);
  absl::MutexLock lock(&mine.mutex);
  EXPECT_TRUE(JobTable::Find(mine, kA, "tenants/a/jobs/j").ok());
  EXPECT_TRUE(absl::IsNotFound(JobTable::Find(mine, kA, "tenants/a/jobs/k").status()));
  EXPECT_TRUE(absl::IsNotFound(JobTable::Find(mine, kA, "tenants/b/jobs/j").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(JobTable::Find(mine, kA, "jobs/j").status()));
}

TEST_F(JobTableTest, OnlyFinalJobsRetire) {
  Finish(Add(kA, "old"), 1);
  Finish(Add(kA, "new"), 8);
  Finish(Add(kB, "old"), 2);
  Add(kA, "runs");
  table_.Retire(At(11));
  EXPECT_THAT(Ids(kA), ElementsAre("new", "old", "runs")) << "not before its time";
  table_.Retire(At(13));
  EXPECT_THAT(Ids(kA), ElementsAre("new", "runs"));
  EXPECT_THAT(Ids(kB), ElementsAre());
}

TEST_F(JobTableTest, FirstToEndMakesRoom) {
  // A job counts as long as anything has it, so none is held here.
  const int64_t cost = Add(kA, "runs")->Cost();
  Finish(Add(kA, "three"), 3);
  Finish(Add(kA, "two"), 1);
  Finish(Add(kA, "one"), 2);
  Finish(Add(kB, "other"), 0);
  core_.accounts->SetQuotas({{kA, {.control_bytes = 3 * cost + cost / 2}}}, {});
  table_.MakeRoom(kA);
  EXPECT_THAT(Ids(kA), ElementsAre("one", "runs", "three"));
  core_.accounts->SetQuotas({{kA, {.control_bytes = 0}}}, {});
  table_.MakeRoom(kA);
  EXPECT_THAT(Ids(kA), ElementsAre("runs")) << "which has not ended";
  EXPECT_THAT(Ids(kB), ElementsAre("other"));
}

}  // namespace
}  // namespace stride::engine
