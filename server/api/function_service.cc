#include "server/api/function_service.h"

#include "server/api/serve.h"

namespace stride::api {

grpc::Status FunctionServiceAdapter::CreateFunction(grpc::ServerContext* context,
                                                    const v1::CreateFunctionRequest* request,
                                                    v1::CreateFunctionResponse* response) {
  return Serve(environment_, context, "FunctionService/CreateFunction", [&](Call& call) {
    audit::Record* record = call.Audit();
    absl::Status status = Into(engine_->CreateFunction(call.tenant(), *request, call.deadline()),
                               response->mutable_function());
    if (record != nullptr) record->resource = response->function().name();
    return status;
  });
}

grpc::Status FunctionServiceAdapter::GetFunction(grpc::ServerContext* context,
                                                 const v1::GetFunctionRequest* request,
                                                 v1::GetFunctionResponse* response) {
  return Serve(environment_, context, "FunctionService/GetFunction", [&](Call& call) {
    return Into(engine_->GetFunction(call.tenant(), request->name()), response->mutable_function());
  });
}

grpc::Status FunctionServiceAdapter::ListFunctions(grpc::ServerContext* context,
                                                   const v1::ListFunctionsRequest* request,
                                                   v1::ListFunctionsResponse* response) {
  return Serve(environment_, context, "FunctionService/ListFunctions", [&](Call& call) {
    return Into(engine_->ListFunctions(call.tenant(), *request), response);
  });
}

grpc::Status FunctionServiceAdapter::DeleteFunction(grpc::ServerContext* context,
                                                    const v1::DeleteFunctionRequest* request,
                                                    v1::DeleteFunctionResponse* response) {
  return Serve(environment_, context, "FunctionService/DeleteFunction",
               [&](Call& call) { return engine_->DeleteFunction(call.tenant(), request->name()); });
}

}  // namespace stride::api
