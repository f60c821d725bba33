#include "server/main/usage_writer.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/recovery/usage.pb.h"
#include "tests/support/await.h"

namespace stride {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TenantId kA{"a"}, kB{"b"}, kC{"c"};

class UsageWriterTest : public ::testing::Test {
 protected:
  UsageWriterTest() {
    std::string pattern = (fs::temp_directory_path() / "usage-writer-XXXXXX").string();
    state_ = mkdtemp(pattern.data());
  }
  ~UsageWriterTest() override {
    writer_.reset();
    fs::remove_all(state_);
  }

  // The next daemon on this folder, after a clean end of the previous one.
  void Restart(std::vector<std::string> devices = {"cpu:0", "cpu:1"},
               absl::Duration interval = absl::Hours(1), size_t max_tenants = 100) {
    writer_.reset();
    accounts_ = std::make_shared<session::TenantAccounts>(identity::Quota{}, std::move(devices));
    UsageWriter::Options options;
    options.folder = state_;
    options.interval = interval;
    options.max_tenants = max_tenants;
    options.log = [this](const std::string& line) {
      absl::MutexLock lock(&mutex_);
      log_ += line + "\n";
    };
    writer_ = UsageWriter::Start(std::move(options), accounts_.get());
  }
  void Work(const TenantId& tenant) {
    accounts_->AddUpload(tenant, 10);
    accounts_->AddDownload(tenant, 20);
    accounts_->AddDeviceTime(tenant, 0, 1.5);
    accounts_->AddDeviceTime(tenant, 1, 0.5);
    accounts_->AddOperation(tenant, 1, true);
    accounts_->AddOperation(tenant, -1, false);
    accounts_->AddJob(tenant);
  }
  // Only the counts.
  v1::Usage UsageOf(const TenantId& tenant) {
    v1::Usage usage = accounts_->Describe(tenant);
    usage.clear_time();
    usage.clear_quotas();
    return usage;
  }
  // Replaces the file of the daemon, which ends.
  void Put(const recovery::UsageRecords& records) {
    writer_.reset();
    fs::remove(path());
    auto file = durable::UsageFile::Open(state_);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Write(records.SerializeAsString()).ok());
  }
  recovery::UsageRecords Written() {
    writer_.reset();
    recovery::UsageRecords records;
    auto file = durable::UsageFile::Open(state_);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return records;
    EXPECT_TRUE(records.ParseFromString((*file)->Read().value_or("?")));
    return records;
  }
  std::string Log() {
    absl::MutexLock lock(&mutex_);
    return log_;
  }
  std::string path() const { return state_ + "/usage"; }
  int NumSetAside() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(state_))
      count += entry.path().filename().string().rfind("usage.damaged-", 0) == 0 ? 1 : 0;
    return count;
  }

  std::string state_, log_;
  absl::Mutex mutex_;
  std::shared_ptr<session::TenantAccounts> accounts_;
  std::unique_ptr<UsageWriter> writer_;
};

TEST_F(UsageWriterTest, CountsContinueAfterRestart) {
  Restart();
  Work(kA);
  accounts_->AddArrayBytes(kA, 1000, 0);
  accounts_->AddArrayBytes(kA, -1000, 0);
  const v1::Usage first = UsageOf(kA);
  for (int round = 2; round <= 4; ++round) {
    Restart();
    EXPECT_EQ(UsageOf(kA).operations(), 2 * (round - 1));
    Work(kA);
    const v1::Usage usage = UsageOf(kA);
    EXPECT_EQ(usage.tenant(), "tenants/a");
    EXPECT_EQ(usage.start_time().SerializeAsString(), first.start_time().SerializeAsString());
    EXPECT_EQ(usage.upload_bytes(), 10 * round);
    EXPECT_EQ(usage.download_bytes(), 20 * round);
    EXPECT_EQ(usage.operations(), 2 * round);
    EXPECT_EQ(usage.operations_failed(), round);
    EXPECT_EQ(usage.jobs(), round);
    EXPECT_DOUBLE_EQ(usage.device_seconds(), 2.0 * round);
    EXPECT_DOUBLE_EQ(usage.array_byte_seconds(), first.array_byte_seconds());
    ASSERT_EQ(usage.devices_size(), 2);
    EXPECT_EQ(usage.devices(1).device(), "devices/cpu:1");
    EXPECT_DOUBLE_EQ(usage.devices(1).device_seconds(), 0.5 * round);
    EXPECT_EQ(usage.devices(1).operations(), round);
    EXPECT_EQ(UsageOf(kB).operations(), 0);
  }
  EXPECT_THAT(Log(), IsEmpty());
}

// A quota bounds current use, which ends with the daemon.
TEST_F(UsageWriterTest, QuotaUseIsNotSaved) {
  Restart();
  Work(kA);
  accounts_->AddArrayBytes(kA, 1000, 500);
  const auto job = accounts_->EnterJob(kA);
  Restart();
  const v1::Usage usage = accounts_->Describe(kA);
  ASSERT_GT(usage.quotas_size(), 0);
  for (const v1::QuotaUsage& quota : usage.quotas()) EXPECT_EQ(quota.used(), 0) << quota.name();
}

TEST_F(UsageWriterTest, RemovedTenantsAndDevicesKeepTheirCounts) {
  Restart({"gpu-old", "cpu:0"});
  Work(kA);
  Work(kB);
  Restart({"cpu:0"});
  accounts_->AddOperation(kA, 0, true);
  Restart({"cpu:0"});
  ASSERT_EQ(UsageOf(kA).devices_size(), 2);
  EXPECT_EQ(UsageOf(kA).devices(0).device(), "devices/cpu:0");
  EXPECT_EQ(UsageOf(kA).devices(0).operations(), 2);
  EXPECT_EQ(UsageOf(kA).devices(1).device(), "devices/gpu-old");
  EXPECT_DOUBLE_EQ(UsageOf(kA).devices(1).device_seconds(), 1.5);
  EXPECT_EQ(UsageOf(kB).operations(), 2) << "no daemon between has seen it";
}

TEST_F(UsageWriterTest, ChangesAreWrittenPeriodically) {
  Restart({"x", "y"}, absl::Milliseconds(1));
  Work(kA);
  AWAIT(fs::exists(path()));
  // As after SIGKILL: the last write of the clean end is undone.
  fs::copy_file(path(), state_ + "/copy");
  writer_.reset();
  fs::rename(state_ + "/copy", path());
  Restart({"x", "y"});
  EXPECT_GT(UsageOf(kA).upload_bytes(), 0);
}

TEST_F(UsageWriterTest, NothingIsWrittenWithoutAChange) {
  Restart();
  Work(kA);
  Restart();
  const auto written = fs::last_write_time(path());
  const std::string before = Written().SerializeAsString();
  Restart();
  EXPECT_EQ(Written().SerializeAsString(), before);
  EXPECT_EQ(fs::last_write_time(path()), written);
}

TEST_F(UsageWriterTest, DamagedFileIsSetAside) {
  Restart();
  Work(kA);
  writer_.reset();
  fs::resize_file(path(), fs::file_size(path()) - 1);
  Restart();
  ASSERT_NE(writer_, nullptr);
  EXPECT_THAT(Log(), HasSubstr(path() + ", cannot be used, and usage counts from 0"));
  EXPECT_EQ(NumSetAside(), 1);
  EXPECT_EQ(UsageOf(kA).operations(), 0);
  Work(kA);
  Restart();
  EXPECT_EQ(UsageOf(kA).operations(), 2) << "and they go on from there";
}

TEST_F(UsageWriterTest, LinkIsNotFollowedAndDoesNotPreventStart) {
  Restart();
  Work(kA);
  writer_.reset();
  fs::rename(path(), state_ + "/elsewhere");
  fs::create_symlink(state_ + "/elsewhere", path());
  Restart();
  ASSERT_NE(writer_, nullptr);
  EXPECT_THAT(Log(), HasSubstr("symbolic link"));
  EXPECT_EQ(UsageOf(kA).operations(), 0);
  const auto size = fs::file_size(state_ + "/elsewhere");
  Work(kB);
  writer_.reset();
  EXPECT_FALSE(fs::is_symlink(path()));
  EXPECT_EQ(fs::file_size(state_ + "/elsewhere"), size);
}

TEST_F(UsageWriterTest, ImpossibleCountsAreDamage) {
  using Usage = v1::Usage;
  const std::vector<void (*)(Usage*)> kWrong = {
      [](Usage* usage) { usage->set_operations(-1); },
      [](Usage* usage) { usage->set_upload_bytes(INT64_MAX); },
      [](Usage* usage) { usage->set_device_seconds(std::nan("")); },
      [](Usage* usage) { usage->set_array_byte_seconds(std::numeric_limits<double>::infinity()); },
      [](Usage* usage) { usage->add_devices()->set_operations(-5); },
      [](Usage* usage) { usage->set_tenant("tenants/"); },
      [](Usage* usage) { usage->set_tenant("a"); },
      [](Usage* usage) { usage->set_tenant("tenants/twice"); },
  };
  for (size_t i = 0; i < kWrong.size(); ++i) {
    recovery::UsageRecords records;
    for (const char* tenant : {"tenants/twice", "tenants/a"}) {
      Usage* usage = records.add_tenants();
      usage->set_tenant(tenant);
      usage->set_operations(7);
    }
    kWrong[i](records.mutable_tenants(1));
    Put(records);
    Restart();
    ASSERT_NE(writer_, nullptr);
    EXPECT_EQ(UsageOf(TenantId{"twice"}).operations(), 0) << i << ": all or nothing";
  }
}

TEST_F(UsageWriterTest, FileKeepsMostRecentlyActiveTenants) {
  recovery::UsageRecords records;
  for (const auto& [tenant, time] : {std::pair{"old", 10}, {"older", 5}, {"oldest", 1}}) {
    v1::Usage* usage = records.add_tenants();
    usage->set_tenant(std::string("tenants/") + tenant);
    usage->set_jobs(1);
    usage->mutable_time()->set_seconds(time);
  }
  Put(records);
  Restart({"x", "y"}, absl::Hours(1), 3);
  Work(kC);
  EXPECT_EQ(Written().tenants_size(), 3);
  EXPECT_THAT(Log(), HasSubstr("more than 3 tenants"));
  Restart();
  EXPECT_EQ(UsageOf(kC).jobs(), 1);
  EXPECT_EQ(UsageOf(TenantId{"old"}).jobs(), 1);
  EXPECT_EQ(UsageOf(TenantId{"older"}).jobs(), 1);
  EXPECT_EQ(UsageOf(TenantId{"oldest"}).jobs(), 0);
}

TEST_F(UsageWriterTest, FailedWriteIsLoggedOnceAndRetried) {
  Restart({"x", "y"}, absl::Milliseconds(1));
  fs::create_directories(state_ + "/usage.tmp/x");
  Work(kA);
  AWAIT(Log().find("cannot be written to " + path()) != std::string::npos);
  const std::string logged = Log();
  Work(kA);
  fs::remove_all(state_ + "/usage.tmp");
  AWAIT(Log() != logged);
  EXPECT_THAT(Log().substr(logged.size()), HasSubstr("is written to " + path() + " again"));
  Restart();
  EXPECT_EQ(UsageOf(kA).operations(), 4);
}

TEST_F(UsageWriterTest, SecondDaemonLeavesTheFileUnchanged) {
  Restart();
  Work(kA);
  session::TenantAccounts other;
  std::string log;
  UsageWriter::Options options;
  options.folder = state_;
  options.log = [&log](const std::string& line) { log += line; };
  EXPECT_EQ(UsageWriter::Start(std::move(options), &other), nullptr);
  EXPECT_THAT(log, HasSubstr("another process"));
}

}  // namespace
}  // namespace stride
