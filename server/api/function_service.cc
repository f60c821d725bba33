#include "server/api/function_service.h"

#include "server/api/serve.h"

namespace stride::api {

void FunctionServiceAdapter::AddMethods() {
  Unary<v1::CreateFunctionRequest, v1::CreateFunctionResponse>(
      "FunctionService/CreateFunction", kContentRequest,
      [this](Call& call, const auto& request, auto* response) {
        audit::Record* record = call.Audit();
        absl::Status status = Into(functions_->Create(call.tenant(), request, call.deadline()),
                                   response->mutable_function());
        if (record != nullptr) record->resource = response->function().name();
        return status;
      });
  Unary<v1::GetFunctionRequest, v1::GetFunctionResponse>(
      "FunctionService/GetFunction", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(functions_->Get(call.tenant(), request.name()), response->mutable_function());
      });
  Unary<v1::ListFunctionsRequest, v1::ListFunctionsResponse>(
      "FunctionService/ListFunctions", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(functions_->List(call.tenant(), request), response);
      });
  Unary<v1::DeleteFunctionRequest, v1::DeleteFunctionResponse>(
      "FunctionService/DeleteFunction", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return functions_->Delete(call.tenant(), request.name());
      });
}

}  // namespace stride::api
