// SIGTERM: accepted work ends, new work is refused, the exit code is 0.

#include <signal.h>

#include "gmock/gmock.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/device_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

// One of grpc.health.v1.HealthCheckResponse.ServingStatus.
constexpr char kServing[] = "\x08\x01", kNotServing[] = "\x08\x02";
constexpr char kHealth[] = "grpc.health.v1.Health/Check";

KernelOptions Spin(int64_t steps) {
  KernelOptions options;
  options.code = R"(extern "C" __global__ void spin(volatile unsigned int* x, long long n) {
    for (long long i = 0; i < n; ++i) x[0] = x[0] + 1; })";
  options.entry = "spin";
  options.arguments = {KernelArgument::Out({DataType::kUint32, {1}}), steps};
  return options;
}

v1::RunRequest Small() {
  v1::RunRequest request;
  auto* operation = request.mutable_operation();
  operation->mutable_ufunc()->set_function("negative");
  operation->mutable_ufunc()->add_inputs()->mutable_scalar()->set_int_value(1);
  operation->add_outputs()->set_inline_result(true);
  return request;
}

TEST(DrainTest, DrainCompletesAcceptedWorkAndRefusesNew) {
  Daemon daemon({"--drain-timeout=40s"});
  Client client = daemon.Connect();
  const Rpc rpc(daemon.address());
  ASSERT_THAT(rpc.Call(kHealth, {""}).replies, ElementsAre(kServing));
  ASSERT_TRUE(rpc.Call("ComputeService/Run", Small()).ok());

  // Seconds of work, the last of which waits for the first. A GPU needs half a microsecond per
  // step.
  const int64_t kSteps = OnCpu() ? 1'000'000'000 : 5'000'000;
  Array result = std::move(client.Kernel(Spin(kSteps)).at(0));
  Array last = client.Ufunc("add", {result, Operand(1)});
  Must(last.Spec());
  daemon.Signal(SIGTERM);
  ASSERT_TRUE(daemon.WaitForLog("draining", seconds(100)));

  EXPECT_TRUE(Eventually([&] {
    const auto health = rpc.Call(kHealth, {""});
    return health.replies == std::vector<std::string>{kNotServing};
  }));
  EXPECT_TRUE(Eventually([&] {
    const Outcome refused = rpc.Call("ComputeService/Run", Small());
    if (refused.ok()) return false;  // the signal was not seen yet
    EXPECT_EQ(refused.code, 14) << refused.ToString();
    EXPECT_EQ(refused.reason, "DRAINING") << refused.ToString();
    EXPECT_TRUE(refused.has_retry_delay);
    return true;
  }));
  // Its results can be read: that is no new work.
  EXPECT_EQ(Get<uint32_t>(client, last), std::vector<uint32_t>{static_cast<uint32_t>(kSteps + 1)});
  EXPECT_EQ(daemon.Wait(seconds(100)), 0);
  EXPECT_TRUE(daemon.WaitForLog("stopped", seconds(5)));
}

TEST(DrainTest, IdleDaemonEndsAtOnce) {
  Daemon daemon;
  Client client = daemon.Connect();
  Array x = Must(client.Put(Iota<float>(1000), {1000}));
  const auto begin = std::chrono::steady_clock::now();
  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.Wait(seconds(100)), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
}

TEST(DrainTest, TimeoutAbandonsEndlessWork) {
  Daemon daemon({"--drain-timeout=500ms"});
  Client client = daemon.Connect();
  KernelOptions endless = Spin(0);
  endless.code =
      R"(extern "C" __global__ void spin(volatile unsigned int* x, long long n) { while (x[0] == n) {} })";
  auto out = client.Kernel(endless);
  Must(out.at(0).Spec());
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(seconds(100)), 0);
  EXPECT_THAT(daemon.Workers(), ::testing::IsEmpty());
}

TEST(DrainTest, SecondSignalEndsTheDaemonAtOnce) {
  Daemon daemon({"--drain-timeout=1h"});
  Client client = daemon.Connect();
  KernelOptions endless = Spin(0);
  endless.code =
      R"(extern "C" __global__ void spin(volatile unsigned int* x, long long n) { while (x[0] == n) {} })";
  auto out = client.Kernel(endless);
  Must(out.at(0).Spec());
  daemon.Signal(SIGTERM);
  ASSERT_TRUE(daemon.WaitForLog("draining", seconds(100)));
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(seconds(100)), 128 + SIGTERM);
}

}  // namespace
}  // namespace stride::testing
