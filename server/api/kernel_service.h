#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/module_service.h"
#include "stride/v1/kernel_service.grpc.pb.h"

namespace stride::api {

// The adapter of KernelService: only decodes, calls and encodes.
class KernelServiceAdapter final : public RawService<v1::KernelService::Service> {
 public:
  // Both must outlive the server.
  KernelServiceAdapter(CallEnvironment* environment, engine::ModuleService* modules)
      : RawService(environment), modules_(modules) {
    AddMethods();
  }

 private:
  void AddMethods();
  engine::ModuleService* const modules_;
};

}  // namespace stride::api
