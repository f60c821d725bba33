#include "server/session/tenant_accounts.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"

namespace stride::session {
namespace {

using ::testing::HasSubstr;

const TenantId kA{"a"}, kB{"b"};

class TenantAccountsTest : public ::testing::Test {
 protected:
  void Set(identity::Quota a, identity::Quota others = {}) {
    accounts_->SetQuotas({{kA, a}}, others);
  }
  v1::Usage Usage(const TenantId& tenant) { return accounts_->Describe(tenant); }
  const std::shared_ptr<TenantAccounts> accounts_ = std::make_shared<TenantAccounts>(
      identity::Quota{.operations = 100, .sessions = 10}, std::vector<std::string>{"x", "y", "z"});
};

TEST_F(TenantAccountsTest, UnsetQuotaIsTheDefault) {
  EXPECT_EQ(accounts_->QuotaOf(kA), (identity::Quota{.operations = 100, .sessions = 10}));
  Set({.sessions = 2, .weight = 3}, {.array_bytes = 5});
  EXPECT_EQ(accounts_->QuotaOf(kA),
            (identity::Quota{.operations = 100, .sessions = 2, .weight = 3}));
  EXPECT_EQ(accounts_->QuotaOf(kB),
            (identity::Quota{.array_bytes = 5, .operations = 100, .sessions = 10}));
}

TEST_F(TenantAccountsTest, ArrayBytesAreBoundedWithDetailedError) {
  Set({.array_bytes = 100});
  EXPECT_TRUE(accounts_->CheckArrayBytes(kA, 100).ok());
  accounts_->AddArrayBytes(kA, 90, 0);
  EXPECT_TRUE(accounts_->CheckArrayBytes(kA, 10).ok());
  EXPECT_TRUE(accounts_->CheckArrayBytes(kB, 1000).ok());
  absl::Status status = accounts_->CheckArrayBytes(kA, 11);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_QUOTA);
  EXPECT_EQ(MetadataOf(status, "quota"), "array-bytes");
  EXPECT_EQ(MetadataOf(status, "limit"), "100");
  EXPECT_EQ(MetadataOf(status, "used"), "90");
  EXPECT_EQ(MetadataOf(status, "asked"), "11");
  google::rpc::QuotaFailure failure;
  ASSERT_TRUE(failure.ParseFromString(
      std::string(*status.GetPayload("type.googleapis.com/google.rpc.QuotaFailure"))));
  ASSERT_EQ(failure.violations_size(), 1);
  EXPECT_EQ(failure.violations(0).subject(), "tenants/a");
  EXPECT_EQ(failure.violations(0).description(),
            "Quota array-bytes: limit 100, used 90, asked for 11");
  EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
  accounts_->AddArrayBytes(kA, -90, 0);
  EXPECT_TRUE(accounts_->CheckArrayBytes(kA, 11).ok());
}

TEST_F(TenantAccountsTest, HugeSizesDoNotOverflow) {
  Set({.array_bytes = 100});
  accounts_->AddArrayBytes(kA, 50, 0);
  EXPECT_FALSE(accounts_->CheckArrayBytes(kA, INT64_MAX).ok());
}

TEST_F(TenantAccountsTest, LoweredQuotaAffectsOnlyNewCharges) {
  accounts_->AddArrayBytes(kA, 90, 0);
  Set({.array_bytes = 10});
  EXPECT_FALSE(accounts_->CheckArrayBytes(kA, 1).ok());
  EXPECT_TRUE(accounts_->CheckArrayBytes(kA, 0).ok());
  Set({});
  EXPECT_TRUE(accounts_->CheckArrayBytes(kA, 1).ok());
}

TEST_F(TenantAccountsTest, JobsAndInlineBytesCountWhileAlive) {
  Set({.inline_bytes = 10, .jobs = 2});
  auto first = accounts_->EnterJob(kA);
  auto second = accounts_->EnterJob(kA);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(MetadataOf(accounts_->EnterJob(kA).status(), "quota"), "jobs");
  EXPECT_TRUE(accounts_->EnterJob(kB).ok());
  first->reset();
  EXPECT_TRUE(accounts_->EnterJob(kA).ok());
  EXPECT_EQ(accounts_->live_jobs(kA), 1);
  auto held = accounts_->HoldInlineBytes(kA, 8);
  EXPECT_EQ(MetadataOf(accounts_->CheckInlineBytes(kA, 3), "quota"), "inline-bytes");
  held.reset();
  EXPECT_TRUE(accounts_->CheckInlineBytes(kA, 3).ok());
}

TEST_F(TenantAccountsTest, ChargesMayOutliveTheAccounts) {
  auto accounts = std::make_shared<TenantAccounts>();
  auto held = accounts->HoldInlineBytes(kA, 8);
  accounts.reset();
  held.reset();
}

TEST_F(TenantAccountsTest, UploadsBeyondTheRateWait) {
  EXPECT_EQ(accounts_->AddUpload(kA, 1 << 30), absl::ZeroDuration());
  Set({.upload_bytes_per_second = 1000});
  // The allowance of one second is free at once.
  EXPECT_EQ(accounts_->AddUpload(kA, 900), absl::ZeroDuration());
  absl::Duration delay = accounts_->AddUpload(kA, 5000);
  EXPECT_GT(delay, absl::Milliseconds(4500));
  EXPECT_LE(delay, absl::Milliseconds(4900));
  EXPECT_GT(accounts_->UploadDelay(kA), absl::Milliseconds(4400));
  EXPECT_EQ(accounts_->UploadDelay(kB), absl::ZeroDuration());
  // A higher rate applies at once; no rate ends the wait.
  Set({.upload_bytes_per_second = 1000000});
  EXPECT_LT(accounts_->UploadDelay(kA), absl::Milliseconds(10));
  Set({});
  EXPECT_EQ(accounts_->UploadDelay(kA), absl::ZeroDuration());
}

TEST_F(TenantAccountsTest, RateHoldsOverTime) {
  Set({.upload_bytes_per_second = 100000});
  SteadyTime start = Now();
  for (int i = 0; i < 15; ++i) absl::SleepFor(accounts_->AddUpload(kA, 10000));
  // 150,000 bytes, 100,000 of them free.
  EXPECT_GE(Now() - start, absl::Milliseconds(490));
}

TEST_F(TenantAccountsTest, UsageCoversOneTenant) {
  accounts_->AddUpload(kA, 10);
  accounts_->AddDownload(kA, 20);
  accounts_->AddDeviceTime(kA, 0, 1.5);
  accounts_->AddDeviceTime(kA, 2, 0.5);
  accounts_->AddOperation(kA, 0, true);
  accounts_->AddOperation(kA, -1, false);
  accounts_->AddJob(kA);
  accounts_->AddArrayBytes(kA, 1000, 0);
  absl::SleepFor(absl::Milliseconds(100));
  v1::Usage usage = Usage(kA);
  EXPECT_EQ(usage.tenant(), "tenants/a");
  EXPECT_EQ(usage.upload_bytes(), 10);
  EXPECT_EQ(usage.download_bytes(), 20);
  EXPECT_DOUBLE_EQ(usage.device_seconds(), 2);
  EXPECT_EQ(usage.operations(), 2);
  EXPECT_EQ(usage.operations_failed(), 1);
  EXPECT_EQ(usage.jobs(), 1);
  EXPECT_GE(usage.array_byte_seconds(), 99);
  accounts_->AddArrayBytes(kA, -1000, 0);
  double sum = Usage(kA).array_byte_seconds();
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_DOUBLE_EQ(Usage(kA).array_byte_seconds(), sum);
  v1::Usage other = Usage(kB);
  EXPECT_EQ(other.upload_bytes() + other.download_bytes() + other.operations() + other.jobs(), 0);
  EXPECT_EQ(other.device_seconds() + other.array_byte_seconds(), 0);
}

}  // namespace
}  // namespace stride::session
