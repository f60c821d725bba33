// Quotas and meters of the engine, per tenant.

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/engine.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/job_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "server/engine/service/tenant_service.h"
#include "server/session/tenant_accounts.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeBroker;
using ::stride::testing::HostDevice;

const TenantId kA{"a"}, kB{"b"};

class QuotaTest : public ::testing::Test {
 protected:
  void Start(identity::Quota a, bool hold = false, EngineOptions options = {}) {
    broker_ = std::make_unique<FakeBroker>(std::vector<wire::DeviceDescription>{HostDevice(0)});
    broker_->set_hold(hold);
    engine_ = Engine::Create(std::move(options), broker_.get());
    engine_->accounts().SetQuotas({{kA, a}}, {});
    for (const TenantId& tenant : {kA, kB}) ASSERT_TRUE(NewSession(tenant, "s").ok());
  }
  void TearDown() override {
    if (broker_ == nullptr) return;
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }

  absl::StatusOr<v1::Session> NewSession(const TenantId& tenant, const std::string& id) {
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    return engine_->sessions().Create(tenant, request);
  }
  static v1::PutArrayRequest::Header Header(int64_t bytes, uint64_t handle) {
    v1::PutArrayRequest::Header header;
    header.set_parent("sessions/s");
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(bytes);
    return header;
  }
  absl::Status Put(const TenantId& tenant, int64_t bytes, uint64_t handle) {
    auto upload =
        engine_->arrays().BeginUpload(tenant, Header(bytes, handle), SteadyTime::InfiniteFuture());
    if (!upload.ok()) return upload.status();
    absl::Status written = (*upload)->Write(std::string(bytes, 'x'));
    return written.ok() ? (*upload)->Finish().status() : written;
  }
  static v1::Operation Fill(int64_t bytes, uint64_t handle) {
    v1::Operation operation;
    auto* spec = operation.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_UINT8);
    spec->add_shape(bytes);
    operation.add_outputs()->set_handle(handle);
    return operation;
  }
  absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(const TenantId& tenant,
                                                          const v1::Operation& operation) {
    return engine_->operations().Submit(tenant, "sessions/s", operation,
                                        SteadyTime::InfiniteFuture());
  }
  absl::Status Release(const TenantId& tenant, uint64_t handle) {
    v1::Release release;
    release.add_handles(handle);
    return engine_->operations().Release(tenant, "sessions/s", release);
  }
  std::map<std::string, int64_t> Used(const TenantId& tenant) {
    std::map<std::string, int64_t> used;
    const v1::Usage usage = engine_->tenants().GetUsage(tenant);
    for (const auto& quota : usage.quotas()) used[quota.name()] = quota.used();
    return used;
  }
  static void ExpectQuota(const absl::Status& status, const std::string& quota) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(MetadataOf(status, "quota"), quota) << status;
  }

  // Memory is freed on another thread.
  bool ComesTo(const TenantId& tenant, const std::string& quota, int64_t used) {
    for (int i = 0; i < 2000 && Used(tenant)[quota] != used; ++i)
      absl::SleepFor(absl::Milliseconds(1));
    return Used(tenant)[quota] == used;
  }

  absl::Mutex mutex_;
  std::vector<JobEnd> ends_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(QuotaTest, DeclaredUploadSizesAreCheckedBeforeReservation) {
  Start({.array_bytes = 1000});
  uint64_t before = engine_->devices().Sample()[0].arena_bytes();
  ExpectQuota(
      engine_->arrays().BeginUpload(kA, Header(1001, 1), SteadyTime::InfiniteFuture()).status(),
      "array-bytes");
  EXPECT_EQ(engine_->devices().Sample()[0].arena_bytes(), static_cast<int64_t>(before));
  EXPECT_TRUE(Put(kA, 600, 1).ok());
  ExpectQuota(Put(kA, 401, 2), "array-bytes");
  EXPECT_TRUE(Put(kA, 400, 2).ok());
  // Arrays of other tenants do not count.
  EXPECT_TRUE(Put(kB, 5000, 1).ok());
  EXPECT_EQ(Used(kA)["array-bytes"], 1000);
  ASSERT_TRUE(Release(kA, 1).ok());
  EXPECT_TRUE(ComesTo(kA, "array-bytes", 400));
  EXPECT_TRUE(Put(kA, 600, 3).ok());
}

TEST_F(QuotaTest, CreatedArraysAndResultsCount) {
  Start({.array_bytes = 1000});
  v1::CreateArrayRequest request;
  request.set_parent("tenants/a");
  request.set_array_id("named");
  request.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_spec()->add_shape(1001);
  ExpectQuota(engine_->arrays().Create(kA, request).status(), "array-bytes");
  request.mutable_spec()->set_shape(0, 700);
  ASSERT_TRUE(engine_->arrays().Create(kA, request).ok());
  ExpectQuota(Submit(kA, Fill(301, 1)).status(), "array-bytes");
  // A refused operation's handle stands for that error and pins no memory.
  EXPECT_EQ(Used(kA)["array-bytes"], 700);
  EXPECT_TRUE(Submit(kA, Fill(300, 2)).ok());
  // A view has no bytes of its own.
  v1::Operation view;
  view.mutable_view()->mutable_input()->set_handle(2);
  view.mutable_view()->add_steps()->mutable_reshape()->add_shape(300);
  view.add_outputs()->set_handle(3);
  EXPECT_TRUE(Submit(kA, view).ok()) << Submit(kA, view).status();
}

TEST_F(QuotaTest, InlineBytesCountUntilUsed) {
  Start({.inline_bytes = 100}, /*hold=*/true);
  v1::Operation copy;
  auto* array = copy.mutable_copy()->mutable_input()->mutable_inline_array();
  array->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  array->mutable_spec()->add_shape(60);
  array->set_data(std::string(60, 'x'));
  copy.add_outputs()->set_handle(1);
  auto first = Submit(kA, copy);
  ASSERT_TRUE(first.ok()) << first.status();
  copy.mutable_outputs(0)->set_handle(2);
  ExpectQuota(Submit(kA, copy).status(), "inline-bytes");
  EXPECT_TRUE(Submit(kB, copy).ok());
  EXPECT_EQ(engine_->tenants().GetUsage(kA).upload_bytes(), 60);
  broker_->set_hold(false);
}

TEST_F(QuotaTest, OperationsInFlightAreBounded) {
  Start({.operations = 2}, /*hold=*/true);
  ASSERT_TRUE(Submit(kA, Fill(8, 1)).ok());
  ASSERT_TRUE(Submit(kA, Fill(8, 2)).ok());
  absl::Status refused = Submit(kA, Fill(8, 3)).status();
  ExpectQuota(refused, "operations");
  EXPECT_EQ(ReasonOf(refused), v1::ERROR_REASON_QUEUE_FULL);
  EXPECT_EQ(MetadataOf(refused, "limit"), "2");
  EXPECT_TRUE(Submit(kB, Fill(8, 1)).ok());
  // The quota is raised while an operation runs.
  engine_->accounts().SetQuotas({{kA, {.operations = 3}}}, {});
  EXPECT_TRUE(Submit(kA, Fill(8, 4)).ok());
  ExpectQuota(Submit(kA, Fill(8, 5)).status(), "operations");
}

TEST_F(QuotaTest, SessionsAndJobsAreBoundedSeparately) {
  EngineOptions options;
  options.job_ended = [this](const JobEnd& end) {
    absl::MutexLock lock(&mutex_);
    ends_.push_back(end);
  };
  Start({.jobs = 1, .sessions = 2}, /*hold=*/true, std::move(options));
  EXPECT_TRUE(NewSession(kA, "t").ok());
  ExpectQuota(NewSession(kA, "u").status(), "sessions");
  v1::CreateJobRequest request;
  *request.mutable_job()->add_operations() = Fill(8, 1);
  auto job = engine_->jobs().Create(kA, request);
  ASSERT_TRUE(job.ok()) << job.status();
  ExpectQuota(engine_->jobs().Create(kA, request).status(), "jobs");
  EXPECT_EQ(Used(kA)["jobs"], 1);
  EXPECT_EQ(Used(kA)["sessions"], 2);
  ExpectQuota(NewSession(kA, "u").status(), "sessions");
  // The job has begun and ends normally.
  std::shared_ptr<::stride::testing::FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  for (int i = 0; i < 2000 && Used(kA)["jobs"] > 0; ++i) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(Used(kA)["jobs"], 0);
  EXPECT_TRUE(engine_->jobs().Create(kA, request).ok());
  EXPECT_EQ(engine_->tenants().GetUsage(kA).jobs(), 2);
  EXPECT_EQ(engine_->tenants().GetUsage(kB).jobs(), 0);
  absl::MutexLock lock(&mutex_);
  ASSERT_FALSE(ends_.empty());
  EXPECT_EQ(ends_[0].tenant, kA);
  EXPECT_EQ(ends_[0].job, job->name());
  EXPECT_EQ(ends_[0].num_operations, 1);
}

TEST_F(QuotaTest, UsageReportsWorkAndBytesOfOneTenant) {
  Start({});
  ASSERT_TRUE(Put(kA, 1000, 1).ok());
  auto ticket = Submit(kA, Fill(8, 2));
  ASSERT_TRUE(ticket.ok());
  ASSERT_TRUE((*ticket)->Wait(Now() + absl::Seconds(100)).ok());
  v1::Usage usage = engine_->tenants().GetUsage(kA);
  EXPECT_EQ(usage.tenant(), "tenants/a");
  EXPECT_EQ(usage.operations(), 1);
  ASSERT_EQ(usage.devices_size(), 1);
  EXPECT_EQ(usage.devices(0).operations(), 1);
  EXPECT_GT(usage.array_byte_seconds(), 0);
  v1::Usage other = engine_->tenants().GetUsage(kB);
  EXPECT_EQ(other.operations(), 0);
  EXPECT_EQ(other.devices_size(), 0);
  EXPECT_EQ(other.array_byte_seconds(), 0);
}

}  // namespace
}  // namespace stride::engine
