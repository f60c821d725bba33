#include "server/api/health_service.h"

#include <chrono>
#include <set>
#include <vector>

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/slice.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/api/request_parser.h"
#include "server/api/status.h"
#include "server/base/device_name.h"

namespace stride::api {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Maximum age of a watcher's state.
constexpr std::chrono::milliseconds kWatchInterval(100);
// Each watch holds a thread, also for unauthenticated callers.
constexpr int kMaxWatches = 64;
// A name, and fields of a newer contract.
constexpr size_t kMaxRequestBytes = 4 << 10;

grpc::Status Parse(const grpc::ByteBuffer& bytes, HealthCheckRequest* request) {
  if (bytes.Length() > kMaxRequestBytes) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        absl::StrCat("a HealthCheckRequest has at most ", kMaxRequestBytes,
                                     " bytes, not ", bytes.Length()));
  }
  std::vector<grpc::Slice> slices;
  std::string text;
  if (bytes.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices)
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    if (request->ParseFromString(text)) return grpc::Status::OK;
  }
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                      "malformed: this is no HealthCheckRequest");
}

bool NeedsDevice(const std::string& name) {
  return name == "stride.v1.ComputeService" || name == "stride.v1.JobService";
}

bool IsOurService(const std::string& name) {
  static const auto* names = new std::set<std::string>{
      "stride.v1.ArrayService",    "stride.v1.ComputeService", "stride.v1.DeviceService",
      "stride.v1.FunctionService", "stride.v1.JobService",     "stride.v1.KernelService",
      "stride.v1.ProgramService",  "stride.v1.SessionService", "stride.v1.TenantService"};
  return names->count(name) > 0;
}

}  // namespace

void HealthService::BeginDrain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
  drain_began_.notify_all();
}

bool HealthService::SomeDeviceServes() {
  for (const v1::Device& device : devices_->List()) {
    if (device.state() == v1::Device::STATE_SERVING) return true;
  }
  return false;
}

HealthService::State HealthService::StateOf(const std::string& name) {
  auto serving = [&](bool serves) {
    return serves && !draining_ ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  };
  if (name.empty()) return serving(SomeDeviceServes());
  if (IsOurService(name)) return serving(!NeedsDevice(name) || SomeDeviceServes());
  for (const v1::Device& device : devices_->List()) {
    if (NamesDevice(name, device.name(), device.kind(), device.index()))
      return serving(device.state() == v1::Device::STATE_SERVING);
  }
  return HealthCheckResponse::SERVICE_UNKNOWN;
}

void HealthService::Rest() {
  std::unique_lock lock(mutex_);
  bool draining = draining_;
  drain_began_.wait_for(lock, kWatchInterval, [&] { return draining_ != draining; });
}

void HealthService::AddMethods() {
  using grpc::internal::RpcMethod;
  using grpc::internal::RpcServiceMethod;
  using CheckHandler =
      grpc::internal::RpcMethodHandler<HealthService, grpc::ByteBuffer, grpc::ByteBuffer>;
  using WatchHandler =
      grpc::internal::ServerStreamingHandler<HealthService, grpc::ByteBuffer, grpc::ByteBuffer>;
  AddMethod(new RpcServiceMethod(
      "/grpc.health.v1.Health/Check", RpcMethod::NORMAL_RPC,
      new CheckHandler(
          [](HealthService* self, grpc::ServerContext*, const grpc::ByteBuffer* request,
             grpc::ByteBuffer* response) { return self->Check(*request, response); },
          this)));
  AddMethod(new RpcServiceMethod(
      "/grpc.health.v1.Health/Watch", RpcMethod::SERVER_STREAMING,
      new WatchHandler(
          [](HealthService* self, grpc::ServerContext* context, const grpc::ByteBuffer* request,
             grpc::ServerWriter<grpc::ByteBuffer>* writer) {
            return self->Watch(context, *request, writer);
          },
          this)));
}

grpc::Status HealthService::Check(const grpc::ByteBuffer& bytes, grpc::ByteBuffer* answer) {
  environment_.counters->Started("Health/Check");
  HealthCheckRequest request;
  HealthCheckResponse response;
  grpc::Status status = Parse(bytes, &request);
  if (status.ok()) {
    State state = StateOf(request.service());
    response.set_status(state);
    if (state == HealthCheckResponse::SERVICE_UNKNOWN)
      status = grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service or device");
  }
  environment_.counters->Handled("Health/Check", status.error_code(), absl::ZeroDuration());
  return status.ok() ? ToGrpcStatus(SerializeResponse(response, answer)) : status;
}

grpc::Status HealthService::Watch(grpc::ServerContext* context, const grpc::ByteBuffer& bytes,
                                  grpc::ServerWriter<grpc::ByteBuffer>* writer) {
  HealthCheckRequest request;
  HealthCheckResponse response;
  if (grpc::Status status = Parse(bytes, &request); !status.ok()) return status;
  const absl::Cleanup leave = [this] { --num_watches_; };
  if (++num_watches_ > kMaxWatches) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        absl::StrCat("too many watches at once; the limit is ", kMaxWatches));
  }
  bool first = true;
  while (!context->IsCancelled()) {
    State state = StateOf(request.service());
    if (first || state != response.status()) {
      response.set_status(state);
      first = false;
      grpc::ByteBuffer answer;
      if (!SerializeResponse(response, &answer).ok() || !writer->Write(answer)) break;
    }
    // After this, the only remaining event is the end of the connection.
    if (environment_.stopping)
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the daemon is stopping");
    Rest();
  }
  return grpc::Status(grpc::StatusCode::CANCELLED, "the watch was cancelled");
}

}  // namespace stride::api
