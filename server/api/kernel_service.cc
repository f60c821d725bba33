#include "server/api/kernel_service.h"

#include "server/api/serve.h"

namespace stride::api {

grpc::Status KernelServiceAdapter::CreateModule(grpc::ServerContext* context,
                                                const v1::CreateModuleRequest* request,
                                                v1::CreateModuleResponse* response) {
  return Serve(environment_, context, "KernelService/CreateModule", [&](Call& call) {
    audit::Record* record = call.Audit();
    absl::Status status = Into(engine_->CreateModule(call.tenant(), *request, call.deadline()),
                               response->mutable_module());
    if (record != nullptr) record->resource = response->module().name();
    return status;
  });
}

grpc::Status KernelServiceAdapter::GetModule(grpc::ServerContext* context,
                                             const v1::GetModuleRequest* request,
                                             v1::GetModuleResponse* response) {
  return Serve(environment_, context, "KernelService/GetModule", [&](Call& call) {
    return Into(engine_->GetModule(call.tenant(), request->name()), response->mutable_module());
  });
}

grpc::Status KernelServiceAdapter::ListModules(grpc::ServerContext* context,
                                               const v1::ListModulesRequest* request,
                                               v1::ListModulesResponse* response) {
  return Serve(environment_, context, "KernelService/ListModules", [&](Call& call) {
    return Into(engine_->ListModules(call.tenant(), *request), response);
  });
}

grpc::Status KernelServiceAdapter::DeleteModule(grpc::ServerContext* context,
                                                const v1::DeleteModuleRequest* request,
                                                v1::DeleteModuleResponse* response) {
  return Serve(environment_, context, "KernelService/DeleteModule",
               [&](Call& call) { return engine_->DeleteModule(call.tenant(), request->name()); });
}

}  // namespace stride::api
