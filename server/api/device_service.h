#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/device_service.h"
#include "server/metrics/sampler.h"
#include "stride/v1/device_service.grpc.pb.h"

namespace stride::api {

// The adapter of DeviceService. A watch holds its thread for as long as the client listens.
class DeviceServiceAdapter final : public RawService<v1::DeviceService::Service> {
 public:
  // All must outlive the server.
  DeviceServiceAdapter(CallEnvironment* environment, engine::DeviceService* devices,
                       metrics::Sampler* sampler, int64_t max_descriptors, int64_t max_connections)
      : RawService(environment),
        devices_(devices),
        sampler_(sampler),
        max_descriptors_(max_descriptors),
        max_connections_(max_connections) {
    AddMethods();
  }

 private:
  void AddMethods();
  absl::Status List(const v1::ListDevicesRequest& request, v1::ListDevicesResponse* response);
  absl::StatusOr<v1::Device> Find(const std::string& name);
  absl::Status Watch(Call& call, const v1::WatchDevicesRequest& request, ResponseWriter* writer);

  engine::DeviceService* const devices_;
  metrics::Sampler* const sampler_;
  const int64_t max_descriptors_, max_connections_;
};

}  // namespace stride::api
