// A device whose workers cannot start for a while: the daemon's reports, and the outcome of work.
// Its worker program is a script that fails while a file exists.

#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "grpc/health/v1/health.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class WorkerFolder {
 public:
  WorkerFolder() {
    std::string pattern = "/tmp/stride-workers.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
    const char* given = std::getenv("STRIDE_TEST_WORKER_DIR");
    const std::string real = given != nullptr
                                 ? std::string(given)
                                 : fs::read_symlink("/proc/self/exe").parent_path().string();
    const std::string script = path_ + "/stride-worker-" + DeviceKind();
    std::ofstream(script) << "#!/bin/sh\n"
                          << "if [ \"$1\" = --serve ] && [ -e " << path_ << "/ill ]; then\n"
                          << "  exit 1\nfi\nexec " << real << "/stride-worker-" << DeviceKind()
                          << " \"$@\"\n";
    chmod(script.c_str(), 0755);
  }
  ~WorkerFolder() { stride::test_support::RemoveFolder(path_); }

  void SetIll(bool ill) {
    if (ill) {
      std::ofstream(path_ + "/ill") << "yes";
    } else {
      fs::remove(path_ + "/ill");
    }
  }
  std::string flag() const { return "--worker-dir=" + path_; }

 private:
  std::string path_;
};

class HealthTest : public ::testing::Test {
 protected:
  HealthCheckResponse::ServingStatus Health(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return rpc_.Get<HealthCheckResponse>("grpc.health.v1.Health/Check", request).status();
  }
  Device OnlyDevice() { return Must(client_.ListDevices()).at(0); }
  // Runs work until `end`; the caller handles errors.
  Result<RunReply> RunOne() {
    return client_.Run(Operation::Ufunc("add", {Operand(1), Operand(2)}));
  }

  WorkerFolder folder_;
  Daemon daemon_{{folder_.flag(), "--spare-workers=0", "--canary-interval=1s", "--no-sandbox"}};
  Client client_ = daemon_.Connect();
  Rpc rpc_{daemon_.address()};
};

TEST_F(HealthTest, DeviceBecomesUnhealthyAndRecovers) {
  EXPECT_EQ(OnlyDevice().state, Device::State::kServing);
  EXPECT_EQ(Health(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(Health(OnlyDevice().name), HealthCheckResponse::SERVING);
  ASSERT_TRUE(RunOne().ok());

  folder_.SetIll(true);
  for (pid_t worker : daemon_.Workers()) kill(worker, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return OnlyDevice().state != Device::State::kServing; }));
  EXPECT_THAT(OnlyDevice().state_reason, ::testing::HasSubstr("its worker does not start"));
  EXPECT_EQ(Health(OnlyDevice().name), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health("stride.v1.ComputeService"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health(""), HealthCheckResponse::NOT_SERVING) << "it is the only device";
  const auto refused = RunOne();
  EXPECT_TRUE(IsError(MustFail(refused), Code::kUnavailable, "DEVICE_NOT_SERVING"));
  EXPECT_TRUE(refused.error().retry_delay.has_value());
  EXPECT_TRUE(daemon_.WaitForLog("device does not serve", std::chrono::seconds(5)));

  folder_.SetIll(false);
  ASSERT_TRUE(Eventually([&] { return OnlyDevice().state == Device::State::kServing; },
                         std::chrono::seconds(60)));
  EXPECT_EQ(Health(""), HealthCheckResponse::SERVING);
  EXPECT_TRUE(RunOne().ok());
  EXPECT_TRUE(daemon_.WaitForLog("device serves again", std::chrono::seconds(5)));
}

// With work available, no task waits for a canary.
TEST_F(HealthTest, FailedWorkerStartsAreDetectedByQueuedWork) {
  ASSERT_TRUE(RunOne().ok());
  folder_.SetIll(true);
  for (pid_t worker : daemon_.Workers()) kill(worker, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return daemon_.Workers().empty(); }));
  EXPECT_TRUE(IsError(MustFail(RunOne()), Code::kUnavailable, "DEVICE_NOT_SERVING"));
  EXPECT_TRUE(Eventually([&] { return OnlyDevice().state != Device::State::kServing; }));
}

}  // namespace
}  // namespace stride::testing
