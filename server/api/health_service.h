#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/api/call.h"
#include "server/scheduler/engine.h"

namespace stride::api {

// grpc.health.v1, telling the present state of the devices rather than a remembered one. Names: ""
// is the daemon, a `stride.v1.` service can work now, `devices/{id}` is one device. The daemon,
// ComputeService and JobService need a serving device. All are NOT_SERVING from BeginDrain on.
// Needs no authentication.
class HealthService final : public grpc::health::v1::Health::Service {
 public:
  // Both must outlive the server.
  HealthService(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  // For good; watchers are told at once.
  void BeginDrain();

  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;
  grpc::Status Watch(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) override;

 private:
  using State = grpc::health::v1::HealthCheckResponse::ServingStatus;
  // SERVICE_UNKNOWN for a name that is not ours.
  State StateOf(const std::string& name);
  bool SomeDeviceServes();
  // Until the state may have changed.
  void Rest();

  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
  std::atomic<bool> draining_{false};
  std::mutex mutex_;
  std::condition_variable drain_began_;
};

}  // namespace stride::api
