#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/tenant_service.h"
#include "stride/v1/tenant_service.grpc.pb.h"

namespace stride::api {

// The adapter of TenantService: nothing but call, encode.
class TenantServiceAdapter final : public RawService<v1::TenantService::Service> {
 public:
  // Both must outlive the server.
  TenantServiceAdapter(CallEnvironment* environment, engine::TenantService* tenants)
      : RawService(environment), tenants_(tenants) {
    AddMethods();
  }

 private:
  void AddMethods();
  engine::TenantService* const tenants_;
};

}  // namespace stride::api
