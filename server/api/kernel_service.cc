#include "server/api/kernel_service.h"

#include "server/api/serve.h"

namespace stride::api {

void KernelServiceAdapter::AddMethods() {
  Unary<v1::CreateModuleRequest, v1::CreateModuleResponse>(
      "KernelService/CreateModule", kContentRequest,
      [this](Call& call, const auto& request, auto* response) {
        audit::Record* record = call.Audit();
        absl::Status status = Into(modules_->Create(call.tenant(), request, call.deadline()),
                                   response->mutable_module());
        if (record != nullptr) record->resource = response->module().name();
        return status;
      });
  Unary<v1::GetModuleRequest, v1::GetModuleResponse>(
      "KernelService/GetModule", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(modules_->Get(call.tenant(), request.name()), response->mutable_module());
      });
  Unary<v1::ListModulesRequest, v1::ListModulesResponse>(
      "KernelService/ListModules", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(modules_->List(call.tenant(), request), response);
      });
  Unary<v1::DeleteModuleRequest, v1::DeleteModuleResponse>(
      "KernelService/DeleteModule", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return modules_->Delete(call.tenant(), request.name());
      });
}

}  // namespace stride::api
