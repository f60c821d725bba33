// Tenants that share a device: what each gets, and how long one that asks for little waits while
// another floods.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>

#include <atomic>
#include <deque>
#include <optional>
#include <thread>

#include "bench/service/bench.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/job_service.pb.h"

namespace stride::bench {
namespace {

using std::chrono::milliseconds;

// Time on the device and hardly any elsewhere.
constexpr char kSpin[] = R"(extern "C" __global__ void spin(volatile unsigned int* x, long long n) {
  for (long long i = 0; i < n; ++i) x[0] = x[0] + 1;
})";
constexpr int kFloodOperations = 50;  // of one job
constexpr int kFloodJobs = 6;         // always under way
constexpr int64_t kQuietElements = 1000;

v1::Operation Fill(int64_t count, const std::string& device) {
  v1::Operation operation;
  auto* fill = operation.mutable_creation()->mutable_fill();
  fill->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  fill->mutable_spec()->add_shape(count);
  fill->mutable_value()->set_float_value(1);
  operation.set_device(device);
  return operation;
}

// About a millisecond: a GPU takes half a microsecond to read what it just wrote.
v1::Operation Spin(uint64_t handle, const std::string& device) {
  const bool cpu = device.find("cpu:") != std::string::npos;
  v1::Operation operation;
  auto* launch = operation.mutable_kernel_launch();
  launch->set_source(kSpin);
  launch->set_entry("spin");
  auto* result = launch->add_arguments()->mutable_new_array();
  result->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT32);
  result->mutable_spec()->add_shape(1);
  result->mutable_output()->set_handle(handle);
  launch->add_arguments()->mutable_scalar()->set_int_value(cpu ? 1'500'000 : 2'000);
  operation.set_device(device);
  return operation;
}

// Calls under a tenant's name, which the client library has no word for.
class Tenant {
 public:
  Tenant(const std::string& address, std::string name) : name_(std::move(name)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  template <typename Response, typename Request>
  std::optional<Response> Call(const char* method, const Request& request) {
    grpc::ClientContext context;
    context.AddMetadata("stride-tenant", name_);
    grpc::internal::RpcMethod rpc(method, grpc::internal::RpcMethod::NORMAL_RPC);
    const grpc::Slice bytes(request.SerializeAsString());
    const grpc::ByteBuffer out(&bytes, 1);
    grpc::ByteBuffer in;
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall(channel_.get(), rpc, &context, out, &in);
    grpc::Slice reply;
    if (!status.ok() || !in.DumpToSingleSlice(&reply).ok()) return std::nullopt;
    Response response;
    if (!response.ParseFromArray(reply.begin(), static_cast<int>(reply.size())))
      return std::nullopt;
    return response;
  }

 private:
  const std::string name_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Keeps a tenant's queue full until it is destroyed.
class Flood {
 public:
  Flood(const std::string& address, const std::string& tenant, std::string device)
      : tenant_(address, tenant), device_(std::move(device)), thread_([this] { Run(); }) {}
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  // Operations ended so far.
  int64_t done() const { return done_; }
  bool broken() const { return broken_; }

 private:
  void Run() {
    std::deque<std::string> jobs;
    while (!stop_ && !broken_) {
      while (jobs.size() < kFloodJobs) jobs.push_back(Begin());
      Await(jobs.front());
      jobs.pop_front();
    }
    for (const std::string& job : jobs) Await(job);
  }
  std::string Begin() {
    v1::CreateJobRequest request;
    for (int i = 0; i < kFloodOperations; ++i)
      *request.mutable_job()->add_operations() = Spin(i + 1, device_);
    auto job = tenant_.Call<v1::CreateJobResponse>("/stride.v1.JobService/CreateJob", request);
    broken_ = broken_ || !job;
    return job ? job->job().name() : "";
  }
  void Await(const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    while (!broken_) {
      auto job = tenant_.Call<v1::GetJobResponse>("/stride.v1.JobService/GetJob", request);
      broken_ = !job || job->job().state() == v1::Job::STATE_FAILED;
      if (job && job->job().state() == v1::Job::STATE_SUCCEEDED) break;
      std::this_thread::sleep_for(milliseconds(2));
    }
    if (!broken_) done_ += kFloodOperations;
  }

  Tenant tenant_;
  const std::string device_;
  std::atomic<int64_t> done_{0};
  std::atomic<bool> stop_{false}, broken_{false};
  std::thread thread_;
};

// Seconds for each of a flood's operations, over a while in which it goes on.
struct Pace {
  explicit Pace(const Flood& flood) : flood(flood), before(flood.done()) {}
  std::optional<double> Stop() const {
    const int64_t count = flood.done() - before;
    if (count == 0) return std::nullopt;
    return SecondsSince(start) / static_cast<double>(count);
  }
  const Flood& flood;
  const int64_t before;
  const Clock::time_point start = Clock::now();
};

void AwaitFirst(const Flood& flood) {
  while (flood.done() == 0 && !flood.broken()) std::this_thread::sleep_for(milliseconds(1));
}

Result<void> MeasureParts(const Setup& setup, const std::string& device, Report& report) {
  const std::string& address = setup.transports[0].daemon;
  Times alone, first, second, both;
  for (int i = 0; i < setup.num_rounds; ++i) {
    Flood a(address, "first", device);
    AwaitFirst(a);
    Pace only(a);
    std::this_thread::sleep_for(milliseconds(700));
    const auto lone = only.Stop();
    Flood b(address, "second", device);
    AwaitFirst(b);
    Pace pace_a(a), pace_b(b);
    std::this_thread::sleep_for(milliseconds(1500));
    const auto part_a = pace_a.Stop(), part_b = pace_b.Stop();
    if (a.broken() || b.broken()) return Broken("A flood of jobs breaks off");
    if (!lone || !part_a || !part_b) continue;  // a job takes longer than this device has now
    alone.Add(*lone);
    first.Add(*part_a);
    second.Add(*part_b);
    both.Add(1 / (1 / *part_a + 1 / *part_b));
  }
  if (both.count() == 0) return Broken("No flood of jobs gets anywhere");
  report.Add({.id = "fair_throughput/" + ShortName(device),
              .what = "A kernel of about 1 ms, of two tenants that flood, " + ShortName(device),
              .ours = both,
              .baseline_name = "one tenant alone",
              .baseline = alone});
  report.Add({.id = "fair_part/" + ShortName(device),
              .what = "  for the one, " + ShortName(device),
              .ours = first,
              .baseline_name = "for the other",
              .baseline = second});
  return {};
}

Result<void> MeasureQuiet(const Setup& setup, const std::string& device, Report& report) {
  const std::string& address = setup.transports[0].daemon;
  Tenant quiet(address, "quiet");
  v1::RunRequest request;
  *request.mutable_operation() = Fill(kQuietElements, device);
  request.mutable_operation()->add_outputs()->set_inline_result(true);
  auto measure = [&](Times* times) -> Result<void> {
    for (int i = 0; i < setup.num_calls / 4 + 1; ++i) {
      const auto start = Clock::now();
      auto response = quiet.Call<v1::RunResponse>("/stride.v1.ComputeService/Run", request);
      if (!response) return Broken("The quiet tenant is refused");
      times->Add(SecondsSince(start));
      std::this_thread::sleep_for(milliseconds(2));
    }
    return {};
  };
  Times warm, undisturbed, flooded;
  BENCH_OK(measure(&warm));
  BENCH_OK(measure(&undisturbed));
  {
    Flood flood(address, "first", device);
    AwaitFirst(flood);
    BENCH_OK(measure(&flooded));
    if (flood.broken()) return Broken("A flood of jobs breaks off");
  }
  report.Add({.id = "fair_quiet/" + ShortName(device),
              .what = "Run fill, 1000 float32, while another floods, " + ShortName(device),
              .ours = flooded,
              .baseline_name = "nobody else there",
              .baseline = undisturbed});
  return {};
}

}  // namespace

Result<void> MeasureFairness(const Setup& setup, Report& report) {
  report.Section("Tenants that share a device");
  for (const auto& device : setup.devices) {
    BENCH_OK(MeasureParts(setup, device, report));
    BENCH_OK(MeasureQuiet(setup, device, report));
  }
  return {};
}

}  // namespace stride::bench
