#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/program_service.h"
#include "stride/v1/program_service.grpc.pb.h"

namespace stride::api {

// The adapter of ProgramService: nothing but decode, call, encode.
class ProgramServiceAdapter final : public RawService<v1::ProgramService::Service> {
 public:
  // Both must outlive the server.
  ProgramServiceAdapter(CallEnvironment* environment, engine::ProgramService* programs)
      : RawService(environment), programs_(programs) {
    AddMethods();
  }

 private:
  void AddMethods();
  engine::ProgramService* const programs_;
};

}  // namespace stride::api
