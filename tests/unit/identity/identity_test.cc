#include "server/identity/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/temporary_folder.h"

namespace stride::identity {
namespace {

using ::stride::testing::Eventually;
using ::testing::HasSubstr;

class IdentityTest : public ::testing::Test {
 protected:
  IdentityTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "identity-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/tenants.conf";
  }
  ~IdentityTest() override { stride::test_support::RemoveFolder(folder_); }

  void Put(const std::string& text) {
    std::ofstream(path_ + ".new") << text;
    std::filesystem::rename(path_ + ".new", path_);
  }
  static std::string Tenant(const std::string& name, const std::string& token) {
    return "[tenant " + name + "]\ntoken = " + ToText(HashToken(token)) + "\n";
  }
  Identity::Options Quick() {
    return {.log =
                [this](const std::string& line) {
                  std::lock_guard lock(mutex_);
                  log_ += line + "\n";
                },
            .interval = absl::Milliseconds(5)};
  }
  std::string log() {
    std::lock_guard lock(mutex_);
    return log_;
  }

  std::string folder_, path_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(IdentityTest, InvalidFileAtStartIsAnError) {
  EXPECT_FALSE(Identity::Open(path_, Quick()).ok());
  Put("[tenant a]\nnonsense\n");
  auto identity = Identity::Open(path_, Quick());
  ASSERT_FALSE(identity.ok());
  EXPECT_THAT(std::string(identity.status().message()), HasSubstr("line 2"));
}

TEST_F(IdentityTest, WorldWritableFileIsRefused) {
  Put("[tenant a]\n");
  chmod(path_.c_str(), 0666);
  EXPECT_EQ(Identity::Open(path_, Quick()).status().code(), absl::StatusCode::kFailedPrecondition);
  chmod(path_.c_str(), 0640);
  EXPECT_TRUE(Identity::Open(path_, Quick()).ok());
}

TEST_F(IdentityTest, ChangedFileTakesEffectAtOnce) {
  std::string first = NewToken(), second = NewToken();
  Put(Tenant("a", first));
  auto identity = Identity::Open(path_, Quick());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ((*identity)->FromToken(first)->tenant.value, "a");
  EXPECT_FALSE((*identity)->FromToken(second).has_value());
  Put(Tenant("b", second));
  EXPECT_TRUE(Eventually([&] { return (*identity)->FromToken(second).has_value(); }));
  EXPECT_FALSE((*identity)->FromToken(first).has_value());
  // Also in place, as an editor may write it.
  std::ofstream(path_, std::ios::app) << Tenant("c", first);
  EXPECT_TRUE(Eventually([&] { return (*identity)->FromToken(first).has_value(); }));
  EXPECT_EQ((*identity)->FromToken(first)->tenant.value, "c");
}

TEST_F(IdentityTest, InvalidChangeIsRefusedAndReportedOnce) {
  std::string first = NewToken(), second = NewToken();
  Put(Tenant("a", first));
  auto identity = Identity::Open(path_, Quick());
  ASSERT_TRUE(identity.ok()) << identity.status();
  Put(Tenant("b", second) + "sessions = none\n");
  ASSERT_TRUE(Eventually([&] { return !log().empty(); }));
  EXPECT_THAT(log(), HasSubstr("line 3: sessions must be"));
  EXPECT_TRUE((*identity)->FromToken(first).has_value());
  EXPECT_FALSE((*identity)->FromToken(second).has_value());
  std::string logged = log();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(log(), logged);
  // The loss of the file is reported too.
  unlink(path_.c_str());
  ASSERT_TRUE(Eventually([&] { return log() != logged; }));
  EXPECT_TRUE((*identity)->FromToken(first).has_value());
  Put(Tenant("b", second));
  EXPECT_TRUE(Eventually([&] { return (*identity)->FromToken(second).has_value(); }));
}

TEST_F(IdentityTest, EmptyFileCountsAsUnfinishedWrite) {
  const std::string token = NewToken();
  Put(Tenant("a", token));
  auto identity = Identity::Open(path_, Quick());
  ASSERT_TRUE(identity.ok()) << identity.status();
  for (const char* text : {"", "# all that is written yet\n"}) {
    const std::string logged = log();
    std::ofstream(path_, std::ios::trunc) << text;  // in place
    if (*text != '\0' || logged.empty()) {
      ASSERT_TRUE(Eventually([&] { return log() != logged; }));
    }
    EXPECT_THAT(log(), HasSubstr("names no tenant"));
    EXPECT_TRUE((*identity)->FromToken(token).has_value());
    EXPECT_FALSE((*identity)->Reload().ok());
    EXPECT_TRUE((*identity)->FromToken(token).has_value());
  }
  // A file without tenants can still lock all of them out.
  Put("[tenant a]\n");
  EXPECT_TRUE(Eventually([&] { return !(*identity)->FromToken(token).has_value(); }));
}

TEST_F(IdentityTest, WorldWritableModeIsDetected) {
  const std::string token = NewToken();
  Put(Tenant("a", token));
  auto identity = Identity::Open(path_, Quick());
  ASSERT_TRUE(identity.ok()) << identity.status();
  chmod(path_.c_str(), 0666);
  ASSERT_TRUE(Eventually([&] { return !log().empty(); }));
  EXPECT_THAT(log(), HasSubstr("chmod o-w"));
  EXPECT_TRUE((*identity)->FromToken(token).has_value());
}

TEST_F(IdentityTest, FollowersReceiveEachTable) {
  Put("[tenant a]\nsessions = 1\n");
  auto identity = Identity::Open(path_, Quick());
  ASSERT_TRUE(identity.ok()) << identity.status();
  std::atomic<int64_t> sessions{0};
  (*identity)->Follow(
      [&](const TenantTable& table) { sessions = *table.quotas().at({"a"}).sessions; });
  EXPECT_EQ(sessions, 1);
  Put("[tenant a]\nsessions = 22\n");
  EXPECT_TRUE(Eventually([&] { return sessions == 22; }));
}

TEST_F(IdentityTest, ReloadNeedsNoChange) {
  Put("[tenant a]\n");
  auto identity = Identity::Open(path_, {.interval = absl::Hours(1)});
  ASSERT_TRUE(identity.ok()) << identity.status();
  int calls = 0;
  (*identity)->Follow([&](const TenantTable&) { ++calls; });
  EXPECT_TRUE((*identity)->Reload().ok());
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace stride::identity
