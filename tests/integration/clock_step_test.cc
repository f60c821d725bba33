// The wall clock of the daemon's machine is set while the daemon works: no behaviour may change.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/token.h"
#include "stride/client.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wall_clock/wall_clock.h"

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// For waits of a second or two. A wait extended by a step back lasts an hour.
constexpr auto kPatience = seconds(120);

constexpr char kLoop[] = R"(
extern "C" __global__ void loop(volatile int* x, long long n) {
  for (long long i = 0; i != n; ++i) x[0] = x[0] + 1;
})";

// Sets the offset of the daemon's clock from the machine's.
class WallClock {
 public:
  WallClock() {
    std::string pattern = (fs::temp_directory_path() / "wall-clock-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    Set(nanoseconds(0));
  }
  ~WallClock() { stride::test_support::RemoveFolder(folder_); }
  void Set(nanoseconds ahead) {
    const int64_t value = ahead.count();
    // In place: the file is mapped.
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    if (!file) file.open(path(), std::ios::binary | std::ios::out);
    file.write(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  std::vector<std::string> environment() const {
    const fs::path library =
        fs::read_symlink("/proc/self/exe").parent_path() / "libstride_wall_clock.so";
    return {"LD_PRELOAD=" + library.string(), STRIDE_WALL_CLOCK_FILE "=" + path()};
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string path() const { return folder_ + "/ahead"; }
  std::string folder_;
};

class ClockStepTest : public ::testing::TestWithParam<seconds> {
 protected:
  void SetUp() override {
    if (!OnCpu()) GTEST_SKIP() << "nothing of it is a device's";
    PutTenants(Line(token_) + Line(other_token_));
    daemon_.emplace(
        std::vector<std::string>{"--supervise", "--tenants=" + tenants(), "--kill-grace=100ms"},
        Devices{}, clock_.environment());
    client_.emplace(Must(Client::Connect({.address = daemon_->address(), .token = token_})));
  }

  static std::string Line(const std::string& token) {
    return "token = " + identity::ToText(identity::HashToken(token)) + "\n";
  }
  std::string tenants() const { return clock_.folder() + "/tenants.conf"; }
  void PutTenants(const std::string& lines) const {
    std::ofstream(tenants() + ".new") << "[tenant a]\n" << lines;
    fs::rename(tenants() + ".new", tenants());
  }
  Client Other() {
    return Must(Client::Connect({.address = daemon_->address(), .token = other_token_}));
  }
  void Step() { clock_.Set(GetParam()); }
  std::string CreateJob(int64_t steps, nanoseconds timeout) {
    KernelOptions kernel;
    kernel.code = kLoop;
    kernel.entry = "loop";
    const std::vector<int32_t> zero = {0};
    kernel.arguments = {Must(client_->Put(zero, {1}, {.name = "tenants/a/arrays/count"})), steps};
    JobSpec spec;
    spec.timeout = timeout;
    spec.operations.push_back(Operation::Kernel(kernel));
    return Must(client_->CreateJob(spec)).name;
  }
  Job EndOf(const std::string& job) {
    EXPECT_TRUE(Eventually([&] { return Must(client_->GetJob(job)).final(); }, kPatience));
    return Must(client_->GetJob(job));
  }

  const std::string token_ = identity::NewToken(), other_token_ = identity::NewToken();
  WallClock clock_;
  std::optional<Daemon> daemon_;
  std::optional<Client> client_;
};

TEST_P(ClockStepTest, SessionsArraysJobsAndWorkersSurvive) {
  const std::vector<int32_t> content = Iota<int32_t>(1000);
  Array array = Must(client_->Put(content, {1000}));
  Array named = Must(client_->Put(content, {1000}, {.name = "tenants/a/arrays/x"}));
  const std::string job = CreateJob(2'000'000'000, hours(1));
  ASSERT_TRUE(Eventually([&] { return Must(client_->GetJob(job)).state == Job::State::kRunning; },
                         kPatience));
  Step();
  EXPECT_EQ(Must(client_->Fetch<int32_t>(array)), content);
  const Job end = EndOf(job);
  EXPECT_EQ(end.state, Job::State::kSucceeded) << (end.error ? end.error->ToString() : "");
  // Two iterations of the housekeeping, which ends sessions.
  usleep(2'500'000);
  EXPECT_EQ(Must(client_->Fetch<int32_t>(array)), content);
  EXPECT_EQ(Must(client_->Fetch<int32_t>(named)), content);
  EXPECT_EQ(Must(client_->Fetch<int32_t>(client_->Ufunc("add", {array, named})))[3], 6);
  TransferOptions with_deadline;
  with_deadline.timeout = hours(1);
  EXPECT_EQ(Must(client_->Fetch<int32_t>(array, with_deadline)), content);
  // The job changes an array in place: it could not have continued with another worker.
  EXPECT_EQ(daemon_->Log().find("worker lost"), std::string::npos);
  EXPECT_EQ(daemon_->TimesReady(), 1);
}

TEST_P(ClockStepTest, DeadlinesAndRevokedTokensKeepTheirTime) {
  const std::string job = CreateJob(-1, seconds(3));  // its timer waits when the clock is set
  Client revoked = Other();
  Must(revoked.GetUsage());
  Step();
  PutTenants(Line(token_));
  const Job end = EndOf(job);
  EXPECT_EQ(end.state, Job::State::kFailed);
  ASSERT_TRUE(end.error.has_value());
  EXPECT_EQ(end.error->code, Code::kDeadlineExceeded) << end.error->ToString();
  EXPECT_TRUE(Eventually([&] { return !revoked.GetUsage().ok(); }, kPatience));
  Must(client_->GetUsage());
}

TEST_P(ClockStepTest, SessionExpiresOnTime) {
  Daemon daemon({}, {}, clock_.environment());
  const Rpc rpc(daemon.address());
  // A query renews a session; a create with its name does not.
  auto create = [&](const std::string& id, int64_t ttl) {
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    request.mutable_ttl()->set_seconds(ttl);
    return rpc.Call("SessionService/CreateSession", request).ok();
  };
  ASSERT_TRUE(create("brief", 5) && create("lasting", 3600));
  Step();
  EXPECT_TRUE(Eventually([&] { return create("brief", 5); }, kPatience));
  EXPECT_FALSE(create("lasting", 3600)) << "it has ended";
}

INSTANTIATE_TEST_SUITE_P(Steps, ClockStepTest,
                         ::testing::Values(seconds(hours(24)), -seconds(hours(24)), seconds(700),
                                           -seconds(hours(1))),
                         [](const auto& info) {
                           const int64_t step = info.param.count();
                           return (step < 0 ? "Back" : "Forward") + std::to_string(std::abs(step));
                         });

}  // namespace
}  // namespace stride::testing
