#pragma once

#include "server/api/call.h"
#include "server/api/local/pins.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/region_service.h"
#include "stride/v1/region_service.grpc.pb.h"

namespace stride::api {

// The adapter of RegionService by gRPC, which carries no descriptors: regions and the memory of
// arrays are deleted here, and created over local connections.
class RegionServiceAdapter final : public RawService<v1::RegionService::Service> {
 public:
  // All must outlive the server.
  RegionServiceAdapter(CallEnvironment* environment, engine::RegionService* regions, Pins* pins)
      : RawService(environment), regions_(regions), pins_(pins) {
    AddMethods();
  }

 private:
  void AddMethods();

  engine::RegionService* const regions_;
  Pins* const pins_;
};

}  // namespace stride::api
