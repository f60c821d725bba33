// Tenants on one device share its time, and the actions of one on its own work do not affect the
// others.

#include <algorithm>
#include <numeric>

#include "gmock/gmock.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kSource[] = R"(
extern "C" __global__ void spin(volatile unsigned int* x, long long n) {
  for (long long i = 0; i < n; ++i) x[0] = x[0] + 1;
}
extern "C" __global__ void endless(volatile unsigned int* x) { while (x[0] != 99) {} }
)";

class FairTest : public ::testing::Test {
 protected:
  // About two milliseconds: a GPU takes half a microsecond to read its last write.
  static int64_t SpinSteps() { return OnCpu() ? 1'000'000 : 4'000; }

  static v1::Operation Launch(const std::string& entry, int64_t steps) {
    v1::Operation operation;
    auto* launch = operation.mutable_kernel_launch();
    launch->set_source(kSource);
    launch->set_entry(entry);
    auto* result = launch->add_arguments()->mutable_new_array();
    result->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT32);
    result->mutable_spec()->add_shape(1);
    if (entry == "spin") launch->add_arguments()->mutable_scalar()->set_int_value(steps);
    return operation;
  }

  // A job of this many launches.
  static std::string Begin(const Rpc& rpc, const std::string& entry, int count) {
    v1::CreateJobRequest request;
    for (int i = 0; i < count; ++i) {
      *request.mutable_job()->add_operations() = Launch(entry, SpinSteps());
      request.mutable_job()
          ->mutable_operations(i)
          ->mutable_kernel_launch()
          ->mutable_arguments(0)
          ->mutable_new_array()
          ->mutable_output()
          ->set_handle(i + 1);
    }
    return rpc.Get<v1::CreateJobResponse>("JobService/CreateJob", request).job().name();
  }

  static v1::Job Look(const Rpc& rpc, const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    return rpc.Get<v1::GetJobResponse>("JobService/GetJob", request).job();
  }

  // Reads the launch's number back.
  static void RunOne(const Rpc& rpc) {
    v1::RunRequest request;
    *request.mutable_operation() = Launch("spin", 7);
    request.mutable_operation()
        ->mutable_kernel_launch()
        ->mutable_arguments(0)
        ->mutable_new_array()
        ->mutable_output()
        ->set_inline_result(true);
    const auto response = rpc.Get<v1::RunResponse>("ComputeService/Run", request);
    ASSERT_EQ(response.results_size(), 1);
    EXPECT_EQ(response.results(0).inline_array().data(), std::string("\x07\0\0\0", 4));
  }

  Daemon daemon_{{"--trust-tenant-header", "--kill-grace=200ms"}};
  Rpc first_{daemon_.address(), "first"}, second_{daemon_.address(), "second"};
};

TEST_F(FairTest, TenantsGetEqualTimeAndQuietOneIsServedPromptly) {
  RunOne(first_);
  RunOne(second_);
  const std::string a = Begin(first_, "spin", 2000), b = Begin(second_, "spin", 2000);
  // A tenant with little work is not queued after all of that.
  const Rpc quiet(daemon_.address(), "quiet");
  RunOne(quiet);
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) {
    const auto begin = Clock::now();
    RunOne(quiet);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  EXPECT_EQ(Look(first_, a).state(), v1::Job::STATE_RUNNING) << "others had work all the time";
  std::sort(times.begin(), times.end());
  std::printf(
      "measured: %s: a launch of a third tenant while two flood: median %.1f ms, slowest %.1f\n",
      DeviceKind().c_str(), times[5], times.back());
  EXPECT_LT(times[5], 1000);

  v1::Job job_a, job_b;
  ASSERT_TRUE(Eventually([&] { return Look(first_, a).state() == v1::Job::STATE_SUCCEEDED; },
                         seconds(120)));
  ASSERT_TRUE(Eventually([&] { return Look(second_, b).state() == v1::Job::STATE_SUCCEEDED; },
                         seconds(120)));
  job_a = Look(first_, a);
  job_b = Look(second_, b);
  auto end = [](const v1::Timeline& t) {
    return static_cast<double>(t.end_time().seconds()) + t.end_time().nanos() * 1e-9;
  };
  auto run = [](const v1::Timeline& t) { return t.run().seconds() + t.run().nanos() * 1e-9; };
  auto last = [&](const v1::Job& job) {
    return end(*std::max_element(job.timelines().begin(), job.timelines().end(),
                                 [&](const auto& x, const auto& y) { return end(x) < end(y); }));
  };
  auto first_end = [&](const v1::Job& job) {
    return end(*std::min_element(job.timelines().begin(), job.timelines().end(),
                                 [&](const auto& x, const auto& y) { return end(x) < end(y); }));
  };
  // While both had work, they ran for the same time.
  const double from = std::max(first_end(job_a), first_end(job_b));
  const double until = std::min(last(job_a), last(job_b));
  auto ran = [&](const v1::Job& job) {
    return std::accumulate(job.timelines().begin(), job.timelines().end(), 0.0,
                           [&](double sum, const v1::Timeline& t) {
                             return sum + (end(t) > from && end(t) <= until ? run(t) : 0);
                           });
  };
  ASSERT_GT(until, from);
  std::printf("measured: %s: of %.2f s that two tenants shared, they ran %.2f s and %.2f s\n",
              DeviceKind().c_str(), until - from, ran(job_a), ran(job_b));
  EXPECT_NEAR(ran(job_a) / ran(job_b), 1, 0.25);
  EXPECT_LT(ran(job_a) + ran(job_b), 1.6 * (until - from)) << "mostly one at a time";
}

TEST_F(FairTest, CancelledEndlessKernelFailsNoOtherTenant) {
  RunOne(first_);
  RunOne(second_);
  const std::string endless = Begin(first_, "endless", 1);
  ASSERT_TRUE(Eventually([&] { return Look(first_, endless).state() == v1::Job::STATE_RUNNING; }));
  const std::string others = Begin(second_, "spin", 50);
  v1::CancelJobRequest cancel;
  cancel.set_name(endless);
  ASSERT_TRUE(first_.Call("JobService/CancelJob", cancel).ok());
  for (int i = 0; i < 5; ++i) RunOne(second_);
  ASSERT_TRUE(
      Eventually([&] { return Look(first_, endless).state() == v1::Job::STATE_CANCELLED; }));
  EXPECT_EQ(Look(first_, endless).error().code(), 1);
  ASSERT_TRUE(
      Eventually([&] { return Look(second_, others).state() == v1::Job::STATE_SUCCEEDED; }));
  RunOne(first_);
}

}  // namespace
}  // namespace stride::testing
