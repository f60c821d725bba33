#pragma once

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/program_service.grpc.pb.h"

namespace stride::api {

// The adapter of ProgramService: nothing but decode, call, encode.
class ProgramServiceAdapter final : public v1::ProgramService::Service {
 public:
  // Both must outlive the server.
  ProgramServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status CreateProgram(grpc::ServerContext* context, const v1::CreateProgramRequest* request,
                             v1::CreateProgramResponse* response) override;
  grpc::Status GetProgram(grpc::ServerContext* context, const v1::GetProgramRequest* request,
                          v1::GetProgramResponse* response) override;
  grpc::Status ListPrograms(grpc::ServerContext* context, const v1::ListProgramsRequest* request,
                            v1::ListProgramsResponse* response) override;
  grpc::Status DeleteProgram(grpc::ServerContext* context, const v1::DeleteProgramRequest* request,
                             v1::DeleteProgramResponse* response) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
