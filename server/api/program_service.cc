#include "server/api/program_service.h"

#include "server/api/serve.h"

namespace stride::api {

void ProgramServiceAdapter::AddMethods() {
  Unary<v1::CreateProgramRequest, v1::CreateProgramResponse>(
      "ProgramService/CreateProgram", kContentRequest,
      [this](Call& call, const auto& request, auto* response) {
        audit::Record* record = call.Audit();
        absl::Status status = Into(programs_->Create(call.tenant(), request), response);
        if (record != nullptr) record->resource = response->program().name();
        return status;
      });
  Unary<v1::GetProgramRequest, v1::GetProgramResponse>(
      "ProgramService/GetProgram", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(programs_->Get(call.tenant(), request.name()), response->mutable_program());
      });
  Unary<v1::ListProgramsRequest, v1::ListProgramsResponse>(
      "ProgramService/ListPrograms", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(programs_->List(call.tenant(), request), response);
      });
  Unary<v1::DeleteProgramRequest, v1::DeleteProgramResponse>(
      "ProgramService/DeleteProgram", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return programs_->Delete(call.tenant(), request.name());
      });
}

}  // namespace stride::api
