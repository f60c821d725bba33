#include "server/api/program_service.h"

#include "server/api/serve.h"

namespace stride::api {

grpc::Status ProgramServiceAdapter::CreateProgram(grpc::ServerContext* context,
                                                  const v1::CreateProgramRequest* request,
                                                  v1::CreateProgramResponse* response) {
  return Serve(environment_, context, "ProgramService/CreateProgram", [&](Call& call) {
    audit::Record* record = call.Audit();
    absl::Status status = Into(engine_->CreateProgram(call.tenant(), *request), response);
    if (record != nullptr) record->resource = response->program().name();
    return status;
  });
}

grpc::Status ProgramServiceAdapter::GetProgram(grpc::ServerContext* context,
                                               const v1::GetProgramRequest* request,
                                               v1::GetProgramResponse* response) {
  return Serve(environment_, context, "ProgramService/GetProgram", [&](Call& call) {
    return Into(engine_->GetProgram(call.tenant(), request->name()), response->mutable_program());
  });
}

grpc::Status ProgramServiceAdapter::ListPrograms(grpc::ServerContext* context,
                                                 const v1::ListProgramsRequest* request,
                                                 v1::ListProgramsResponse* response) {
  return Serve(environment_, context, "ProgramService/ListPrograms", [&](Call& call) {
    return Into(engine_->ListPrograms(call.tenant(), *request), response);
  });
}

grpc::Status ProgramServiceAdapter::DeleteProgram(grpc::ServerContext* context,
                                                  const v1::DeleteProgramRequest* request,
                                                  v1::DeleteProgramResponse* response) {
  return Serve(environment_, context, "ProgramService/DeleteProgram",
               [&](Call& call) { return engine_->DeleteProgram(call.tenant(), request->name()); });
}

}  // namespace stride::api
