// Tenants that share a device: the share of each, and the latency of a tenant with little work
// while others have much.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "bench/service/bench.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "stride/v1/session_service.pb.h"

namespace stride::bench {
namespace {

using std::chrono::milliseconds;

// Time on the device and hardly any elsewhere.
constexpr char kSpin[] = R"(extern "C" __global__ void spin(volatile unsigned int* x, long long n) {
  for (long long i = 0; i < n; ++i) x[0] = x[0] + 1;
})";
constexpr int kFloodOperations = 50;  // in each job
constexpr int kFloodJobs = 6;         // always in flight
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
    grpc::ByteBuffer in;
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall(channel_.get(), rpc, &context, BytesOf(request), &in);
    grpc::Slice reply;
    Response response;
    if (Keep(method, status) && in.DumpToSingleSlice(&reply).ok() &&
        response.ParseFromArray(reply.begin(), static_cast<int>(reply.size())))
      return response;
    return std::nullopt;
  }
  // The error of the last call that failed.
  std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

  // One Execute call with these requests, read to its end.
  bool Execute(const v1::ExecuteRequest& first, const std::vector<v1::ExecuteRequest>& rest) {
    grpc::ClientContext context;
    context.AddMetadata("stride-tenant", name_);
    const grpc::internal::RpcMethod rpc("/stride.v1.ComputeService/Execute",
                                        grpc::internal::RpcMethod::BIDI_STREAMING, channel_);
    using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
    using Factory = grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>;
    const std::unique_ptr<Stream> stream(Factory::Create(channel_.get(), rpc, &context));
    bool sent = stream->Write(BytesOf(first));
    std::thread reader([&] {
      for (grpc::ByteBuffer in; stream->Read(&in);) {
      }
    });
    for (const v1::ExecuteRequest& request : rest) sent = sent && stream->Write(BytesOf(request));
    stream->WritesDone();
    reader.join();
    return Keep(rpc.name(), stream->Finish()) && sent;
  }

  // A whole array, in one message.
  bool Put(const v1::PutArrayRequest& header, const v1::PutArrayRequest& data) {
    grpc::ClientContext context;
    context.AddMetadata("stride-tenant", name_);
    const grpc::internal::RpcMethod rpc("/stride.v1.ArrayService/PutArray",
                                        grpc::internal::RpcMethod::CLIENT_STREAMING, channel_);
    grpc::ByteBuffer in;
    using Stream = grpc::ClientWriter<grpc::ByteBuffer>;
    const std::unique_ptr<Stream> stream(
        grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(channel_.get(), rpc, &context,
                                                                      &in));
    const bool sent = stream->Write(BytesOf(header)) && stream->Write(BytesOf(data));
    stream->WritesDone();
    return Keep(rpc.name(), stream->Finish()) && sent;
  }

 private:
  static grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message) {
    const grpc::Slice bytes(message.SerializeAsString());
    return grpc::ByteBuffer(&bytes, 1);
  }

  // Keeps the error of a call that failed; false where it did.
  bool Keep(const char* method, const grpc::Status& status) {
    if (status.ok()) return true;
    const std::lock_guard lock(mutex_);
    error_ = std::string(method) + ": " + status.error_message();
    return false;
  }

  const std::string name_;
  std::shared_ptr<grpc::Channel> channel_;
  mutable std::mutex mutex_;
  std::string error_;
};

// Waits for a job's end; false: it has failed, or is not there.
bool Succeeds(Tenant& tenant, const std::string& job) {
  v1::GetJobRequest request;
  request.set_name(job);
  for (;;) {
    auto now = tenant.Call<v1::GetJobResponse>("/stride.v1.JobService/GetJob", request);
    if (!now || now->job().state() == v1::Job::STATE_FAILED) return false;
    if (now->job().state() == v1::Job::STATE_SUCCEEDED) return true;
    std::this_thread::sleep_for(milliseconds(2));
  }
}

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
  std::string error() const { return tenant_.error(); }

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
    broken_ = broken_ || !Succeeds(tenant_, name);
    if (!broken_) done_ += kFloodOperations;
  }

  Tenant tenant_;
  const std::string device_;
  std::atomic<int64_t> done_{0};
  std::atomic<bool> stop_{false}, broken_{false};
  std::thread thread_;
};

// Does one thing again and again until it is destroyed.
class Neighbour {
 public:
  using Turn = std::function<bool(Tenant&)>;
  Neighbour(const std::string& address, Turn turn)
      : tenant_(address, "first"), turn_(std::move(turn)), thread_([this] {
          while (!stop_ && !broken_) {
            broken_ = !turn_(tenant_);
            ++done_;
          }
        }) {}
  ~Neighbour() {
    stop_ = true;
    thread_.join();
  }
  int64_t done() const { return done_; }
  bool broken() const { return broken_; }
  std::string error() const { return tenant_.error(); }

 private:
  Tenant tenant_;
  const Turn turn_;
  std::atomic<int64_t> done_{0};
  std::atomic<bool> stop_{false}, broken_{false};
  std::thread thread_;
};

// Does it in a session of its own, which then ends.
bool InSession(Tenant& tenant, const std::function<bool(const std::string&)>& work) {
  auto made = tenant.Call<v1::CreateSessionResponse>("/stride.v1.SessionService/CreateSession",
                                                     v1::CreateSessionRequest());
  if (!made) return false;
  const bool done = work(made->session().name());
  v1::DeleteSessionRequest end;
  end.set_name(made->session().name());
  return tenant.Call<v1::DeleteSessionResponse>("/stride.v1.SessionService/DeleteSession", end) &&
         done;
}

// So many small operations in a row, whose results are kept until the session ends.
bool Rush(Tenant& tenant, const std::string& device) {
  constexpr int kMessages = 20, kOperations = 1000;
  return InSession(tenant, [&](const std::string& session) {
    v1::ExecuteRequest first;
    first.set_session(session);
    std::vector<v1::ExecuteRequest> rest(kMessages);
    uint64_t handle = 0;
    for (v1::ExecuteRequest& request : rest) {
      for (int i = 0; i < kOperations; ++i) {
        v1::Operation* operation = request.add_commands()->mutable_operation();
        *operation = Fill(1, device);
        operation->add_outputs()->set_handle(++handle);
      }
    }
    return tenant.Execute(first, rest);
  });
}

// A hundred arrays of 64 KiB.
bool Upload(Tenant& tenant, const std::string& device) {
  constexpr int kArrays = 100, kElements = 16 << 10;
  return InSession(tenant, [&](const std::string& session) {
    v1::PutArrayRequest header, data;
    header.mutable_header()->set_parent(session);
    header.mutable_header()->set_device(device);
    header.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
    header.mutable_header()->mutable_spec()->add_shape(kElements);
    data.set_data(std::string(4 * kElements, 'x'));
    for (int i = 1; i <= kArrays; ++i) {
      header.mutable_header()->set_array_id(std::to_string(i));
      if (!tenant.Put(header, data)) return false;
    }
    return true;
  });
}

// A job of as many operations as one may have, and one that is refused at its last.
bool SendJobs(Tenant& tenant, const std::string& device) {
  constexpr int kOperations = 10000;
  v1::CreateJobRequest request;
  for (int i = 1; i <= kOperations; ++i) {
    v1::Operation* operation = request.mutable_job()->add_operations();
    *operation = Fill(1, device);
    operation->add_outputs()->set_handle(i);
  }
  auto made = tenant.Call<v1::CreateJobResponse>("/stride.v1.JobService/CreateJob", request);
  if (!made) return false;
  request.mutable_job()->mutable_operations(kOperations - 1)->mutable_ufunc()->set_function("none");
  if (tenant.Call<v1::CreateJobResponse>("/stride.v1.JobService/CreateJob", request)) return false;
  return Succeeds(tenant, made->job().name());
}

// The rate of work in progress, whose operations that have ended `done` counts.
class Pace {
 public:
  explicit Pace(std::function<int64_t()> done) : done_(std::move(done)), before_(done_()) {}
  // Seconds for each operation, if any has ended.
  std::optional<double> Stop() const {
    const int64_t count = done_() - before_;
    if (count == 0) return std::nullopt;
    return SecondsSince(start_) / static_cast<double>(count);
  }
  // The same after `time`, or as soon as an operation has ended afterwards: a slow machine may end
  // none in `time`. Nothing if none ends in kLongest.
  std::optional<double> StopAfter(milliseconds time) const {
    std::this_thread::sleep_for(time);
    while (done_() == before_ && SecondsSince(start_) < kLongest)
      std::this_thread::sleep_for(milliseconds(1));
    return Stop();
  }

 private:
  static constexpr double kLongest = 60;  // seconds

  const std::function<int64_t()> done_;
  const int64_t before_;
  const Clock::time_point start_ = Clock::now();
};

template <typename Work>
void AwaitFirst(const Work& work) {
  while (work.done() == 0 && !work.broken()) std::this_thread::sleep_for(milliseconds(1));
}

// An error where work stopped early.
template <typename Work>
Result<void> Unbroken(const Work& work) {
  if (work.broken()) return Broken("Another tenant's work ends early: " + work.error());
  return {};
}

Result<void> MeasureParts(const Setup& setup, const std::string& device, Report& report) {
  const std::string& address = setup.transports[0].daemon;
  Times alone, first, second, both;
  for (int i = 0; i < setup.num_rounds; ++i) {
    Flood a(address, "first", device);
    AwaitFirst(a);
    const auto lone = Pace([&] { return a.done(); }).StopAfter(milliseconds(700));
    Flood b(address, "second", device);
    AwaitFirst(b);
    const Pace pace_a([&] { return a.done(); }), pace_b([&] { return b.done(); });
    const auto part_a = pace_a.StopAfter(milliseconds(1500));
    const auto part_b = pace_b.StopAfter(milliseconds(0));
    BENCH_OK(Unbroken(a));
    BENCH_OK(Unbroken(b));
    if (!lone || !part_a || !part_b) return Broken("No job of a flood ends");
    alone.Add(*lone);
    first.Add(*part_a);
    second.Add(*part_b);
    both.Add(1 / (1 / *part_a + 1 / *part_b));
  }
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
      if (!response) return Broken("The quiet tenant is refused: " + quiet.error());
      times->Add(SecondsSince(start));
      std::this_thread::sleep_for(milliseconds(2));
    }
    return {};
  };
  Times warm, undisturbed, flooded, flooded_twice, kernel, disturbed_kernel;
  BENCH_OK(measure(&warm));
  BENCH_OK(measure(&undisturbed));
  {
    Flood flood(address, "first", device);
    AwaitFirst(flood);
    BENCH_OK(measure(&flooded));
    Flood second(address, "second", device);
    AwaitFirst(second);
    const auto kernels = [&] { return flood.done() + second.done(); };
    for (int i = 0; i < setup.num_rounds; ++i) {
      const auto alone = Pace(kernels).StopAfter(milliseconds(700));
      const Pace disturbed(kernels);
      BENCH_OK(measure(&flooded_twice));
      const auto beside = disturbed.StopAfter(milliseconds(0));
      BENCH_OK(Unbroken(flood));
      BENCH_OK(Unbroken(second));
      if (!alone || !beside) return Broken("No job of a flood ends");
      kernel.Add(*alone);
      disturbed_kernel.Add(*beside);
    }
  }
  report.Add({.id = "fair_quiet/" + ShortName(device),
              .what = "Run fill, 1000 float32, while another floods, " + ShortName(device),
              .ours = flooded,
              .baseline_name = "alone",
              .baseline = undisturbed});
  report.Add({.id = "fair_quiet_two/" + ShortName(device),
              .what = "  while two flood, " + ShortName(device),
              .ours = flooded_twice,
              .baseline_name = "alone",
              .baseline = undisturbed});
  report.Add({.id = "fair_cost/" + ShortName(device),
              .what = "  a kernel of the two next to it, " + ShortName(device),
              .ours = disturbed_kernel,
              .baseline_name = "the two alone",
              .baseline = kernel});
  const struct {
    const char *id, *what;
    bool (*turn)(Tenant&, const std::string&);
  } neighbours[] = {
      {"fair_quiet_rush/", "  while another sends small operations and ends sessions, ", Rush},
      {"fair_quiet_uploads/", "  while another uploads arrays, ", Upload},
      {"fair_quiet_jobs/", "  while another sends jobs of 10,000 operations, ", SendJobs}};
  for (const auto& one : neighbours) {
    Times times;
    {
      Neighbour neighbour(address, [&](Tenant& tenant) { return one.turn(tenant, device); });
      AwaitFirst(neighbour);
      BENCH_OK(measure(&times));
      BENCH_OK(Unbroken(neighbour));
    }
    report.Add({.id = one.id + ShortName(device),
                .what = one.what + ShortName(device),
                .ours = times,
                .baseline_name = "alone",
                .baseline = undisturbed});
  }
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
