#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/api/call.h"
#include "server/engine/service/device_service.h"

namespace stride::api {

// grpc.health.v1, which reports the present state of the devices. Names: "" is the daemon, a
// `stride.v1.` service can work now, `devices/{id}` is one device. The daemon, ComputeService and
// JobService need a serving device. All are NOT_SERVING from BeginDrain on. Needs no
// authentication, so it receives messages of unknown callers. gRPC receives them, and only small
// ones are parsed. For a request of a newer contract, the known fields decide the answer.
class HealthService final : public grpc::Service {
 public:
  // Both must outlive the server.
  HealthService(CallEnvironment* environment, engine::DeviceService* devices)
      : environment_(*environment), devices_(devices) {
    AddMethods();
  }

  // Permanent; notifies watchers at once.
  void BeginDrain();

 private:
  using State = grpc::health::v1::HealthCheckResponse::ServingStatus;
  void AddMethods();
  grpc::Status Check(const grpc::ByteBuffer& request, grpc::ByteBuffer* response);
  grpc::Status Watch(grpc::ServerContext* context, const grpc::ByteBuffer& request,
                     grpc::ServerWriter<grpc::ByteBuffer>* writer);
  // SERVICE_UNKNOWN for an unknown name.
  State StateOf(const std::string& name);
  bool SomeDeviceServes();
  // Sleeps until the state may have changed.
  void Rest();

  CallEnvironment& environment_;
  engine::DeviceService* const devices_;
  std::atomic<bool> draining_{false};
  std::atomic<int> num_watches_{0};
  std::mutex mutex_;
  std::condition_variable drain_began_;
};

}  // namespace stride::api
