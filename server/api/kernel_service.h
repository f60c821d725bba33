#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/engine.h"
#include "stride/v1/kernel_service.grpc.pb.h"

namespace stride::api {

// The adapter of KernelService: only decodes, calls and encodes.
class KernelServiceAdapter final : public RawService<v1::KernelService::Service> {
 public:
  // Both must outlive the server.
  KernelServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : RawService(environment), engine_(engine) {
    AddMethods();
  }

 private:
  void AddMethods();
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
