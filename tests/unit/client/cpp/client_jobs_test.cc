#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "stride/client.h"
#include "tests/support/fake_daemon/fake_daemon.h"
#include "tests/support/temporary_folder.h"

namespace stride {
namespace {

class ClientJobsTest : public ::testing::Test {
 protected:
  ClientJobsTest() {
    std::string name = std::filesystem::temp_directory_path() / "jobs.XXXXXX";
    folder_ = mkdtemp(name.data());
    daemon_ = std::make_unique<testing::FakeDaemon>("unix:" + folder_ + "/s");
    auto client = Client::Connect({.address = "unix:" + folder_ + "/s"});
    EXPECT_TRUE(client.ok());
    client_.emplace(std::move(*client));
  }
  ~ClientJobsTest() override {
    client_.reset();
    daemon_.reset();
    stride::test_support::RemoveFolder(folder_);
  }

  JobSpec Spec(const std::string& id) {
    Operation twice = Operation::Ufunc("multiply", {Operand::Named("tenants/default/arrays/x"), 2});
    Operation more = Operation::Ufunc("add", {Operand::JobHandle(1), 1});
    return {.operations = {twice.ToJobHandle(1), more.ToName("tenants/default/arrays/y")},
            .label = "two",
            .id = id};
  }

  std::string folder_;
  std::unique_ptr<testing::FakeDaemon> daemon_;
  std::optional<Client> client_;
};

TEST_F(ClientJobsTest, JobIsAcceptedWatchedAndReported) {
  const auto job = client_->CreateJob(Spec("j"));
  ASSERT_TRUE(job.ok()) << job.error().ToString();
  EXPECT_EQ(job->name, "tenants/default/jobs/j");
  EXPECT_EQ(job->state, Job::State::kQueued);
  EXPECT_FALSE(job->final());
  std::vector<Job::State> seen;
  ASSERT_TRUE(client_
                  ->WatchJob(job->name,
                             [&](const Job& changed) {
                               seen.push_back(changed.state);
                               return true;
                             })
                  .ok());
  EXPECT_EQ(seen, (std::vector{Job::State::kQueued, Job::State::kRunning, Job::State::kSucceeded}));
  const auto last = client_->GetJob(job->name);
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(last->final());
  EXPECT_EQ(last->label, "two");
}

TEST_F(ClientJobsTest, EqualRequestIdCreatesOneJob) {
  JobSpec spec = Spec("first");
  spec.request_id = "0e7a2b6c-8a51-4c1e-9d1f-2a0c57f3b9aa";
  ASSERT_TRUE(client_->CreateJob(spec).ok());
  spec.id = "second";
  EXPECT_EQ(client_->CreateJob(spec)->name, "tenants/default/jobs/first");
  // Without one, the client generates a new id for each call.
  EXPECT_EQ(client_->CreateJob(Spec("third"))->name, "tenants/default/jobs/third");
  EXPECT_EQ(client_->CreateJob(Spec("fourth"))->name, "tenants/default/jobs/fourth");
}

TEST_F(ClientJobsTest, CancelAndUnknownNames) {
  ASSERT_TRUE(client_->CreateJob(Spec("j")).ok());
  EXPECT_EQ(client_->CancelJob("tenants/default/jobs/j")->state, Job::State::kCancelled);
  EXPECT_EQ(client_->GetJob("tenants/default/jobs/none").error().code, Code::kNotFound);
  EXPECT_EQ(
      client_->WatchJob("tenants/default/jobs/none", [](const Job&) { return true; }).error().code,
      Code::kNotFound);
}

}  // namespace
}  // namespace stride
