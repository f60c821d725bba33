#include "server/audit/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "tests/support/await.h"
#include "tests/support/temporary_folder.h"

namespace stride::audit {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "audit-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/audit.jsonl";
  }
  ~AuditLogTest() override { stride::test_support::RemoveFolder(folder_); }
  std::string folder_, path_;
};

TEST(AuditRecordTest, IsOneLineOfJson) {
  Record record{.time = absl::FromUnixMillis(1800000000123),
                .tenant = "physics",
                .identity = "token:laptop",
                .peer = "ipv4:10.0.0.7:51234",
                .event = "ComputeService/Run",
                .device = "devices/cpu:0",
                .device_seconds = 0.25,
                .num_operations = 1,
                .outcome = "OK"};
  EXPECT_EQ(ToJson(record),
            R"({"time":"2027-01-15T08:00:00.123000Z","tenant":"physics","identity":"token:laptop",)"
            R"("peer":"ipv4:10.0.0.7:51234","event":"ComputeService/Run","device":"devices/cpu:0",)"
            R"("device_seconds":0.250000000,"operations":1,"outcome":"OK"})");
  Record odd{.time = record.time, .resource = "a\"\n\\\x01"};
  EXPECT_EQ(ToJson(odd), R"({"time":"2027-01-15T08:00:00.123000Z","resource":"a\"\n\\\u0001"})");
}

TEST_F(AuditLogTest, KeepsOrderAndWritesAllAtTheEnd) {
  auto log = AuditLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  for (int i = 0; i < 1000; ++i) (*log)->Write({.event = "e" + std::to_string(i)});
  log->reset();
  auto lines = LinesOf(path_);
  ASSERT_EQ(lines.size(), 1000u);
  for (int i = 0; i < 1000; ++i)
    EXPECT_THAT(lines[i], HasSubstr("\"event\":\"e" + std::to_string(i) + "\""));
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AuditLogTest, ContinuesInNewFileAfterRotation) {
  auto log = AuditLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Write({.event = "before"});
  std::filesystem::rename(path_, path_ + ".1");
  (*log)->Reopen();
  for (int i = 0; i < 2000 && !std::filesystem::exists(path_); ++i)
    absl::SleepFor(absl::Milliseconds(5));
  (*log)->Write({.event = "after"});
  log->reset();
  EXPECT_THAT(LinesOf(path_ + ".1"), ::testing::ElementsAre(HasSubstr("before")));
  EXPECT_THAT(LinesOf(path_), ::testing::ElementsAre(HasSubstr("after")));
}

TEST_F(AuditLogTest, UnwritableRecordsAreCountedWithoutBlocking) {
  auto log = AuditLog::Open("/dev/full");
  ASSERT_TRUE(log.ok()) << log.status();
  for (int i = 0; i < 100; ++i) (*log)->Write({.event = "lost"});
  for (int i = 0; i < 2000 && (*log)->num_dropped() < 100; ++i)
    absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ((*log)->num_dropped(), 100);
}

TEST_F(AuditLogTest, RecordsLostToBlockedDiskAreReported) {
  // A FIFO without a reader: the writer blocks in write().
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto log = AuditLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  const int kMany = 3 * static_cast<int>(AuditLog::kMaxWaiting);
  SteadyTime start = Now();
  for (int i = 0; i < kMany; ++i) (*log)->Write({.event = "line"});
  EXPECT_LT(Now() - start, absl::Seconds(5));
  EXPECT_GT((*log)->num_dropped(), 0);
  (*log)->Write({.event = "line"});
  std::string all;
  std::thread drain([&] {
    fcntl(reader, F_SETFL, 0);
    char buffer[65536];
    for (ssize_t got; (got = read(reader, buffer, sizeof(buffer))) > 0;) all.append(buffer, got);
  });
  AWAIT((*log)->num_dropped() != 0);
  absl::SleepFor(absl::Milliseconds(100));
  (*log)->Write({.event = "last"});
  log->reset();
  drain.join();
  close(reader);
  EXPECT_THAT(all, HasSubstr("\"event\":\"dropped\",\"lines\":"));
  EXPECT_THAT(all, HasSubstr("\"event\":\"last\""));
}

}  // namespace
}  // namespace stride::audit
