#include "server/api/health_service.h"

#include <chrono>
#include <set>

#include "server/base/device_name.h"

namespace stride::api {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// How old the news of a watcher may be.
constexpr std::chrono::milliseconds kWatchInterval(100);

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
  for (const v1::Device& device : engine_->ListDevices()) {
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
  for (const v1::Device& device : engine_->ListDevices()) {
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

grpc::Status HealthService::Check(grpc::ServerContext* context, const HealthCheckRequest* request,
                                  HealthCheckResponse* response) {
  environment_.counters->Started("Health/Check");
  State state = StateOf(request->service());
  bool known = state != HealthCheckResponse::SERVICE_UNKNOWN;
  response->set_status(state);
  environment_.counters->Handled("Health/Check", known ? 0 : grpc::StatusCode::NOT_FOUND,
                                 absl::ZeroDuration());
  return known ? grpc::Status::OK
               : grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service or device");
}

grpc::Status HealthService::Watch(grpc::ServerContext* context, const HealthCheckRequest* request,
                                  grpc::ServerWriter<HealthCheckResponse>* writer) {
  HealthCheckResponse response;
  bool first = true;
  while (!context->IsCancelled()) {
    State state = StateOf(request->service());
    if (first || state != response.status()) {
      response.set_status(state);
      first = false;
      if (!writer->Write(response)) break;
    }
    // What is left to tell after this is the end of the connection.
    if (environment_.stopping)
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the daemon is stopping");
    Rest();
  }
  return grpc::Status(grpc::StatusCode::CANCELLED, "the watch was cancelled");
}

}  // namespace stride::api
