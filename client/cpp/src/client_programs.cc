#include "client/cpp/src/call.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/operation_impl.h"
#include "client/cpp/src/status.h"
#include "stride/client.h"
#include "stride/v1/program_service.grpc.pb.h"

namespace stride {
namespace {

std::unique_ptr<v1::ProgramService::Stub> Stub(internal::Core& core) {
  return v1::ProgramService::NewStub(core.channels.control());
}

Program FromProto(const v1::Program& program) {
  return {.name = program.name(),
          .num_inputs = program.inputs_size(),
          .num_outputs = program.outputs_size()};
}

}  // namespace

Result<Program> Client::CreateProgram(const ProgramSpec& spec, const CallOptions& options) {
  v1::CreateProgramRequest request;
  request.set_program_id(spec.id);
  v1::Program* program = request.mutable_program();
  for (const ProgramSpec::Input& input : spec.inputs) {
    v1::ProgramInput* added = program->add_inputs();
    added->set_handle(input.handle);
    if (input.spec) internal::ToProto(*input.spec, added->mutable_spec());
  }
  for (const Operation& operation : spec.operations) {
    if (operation.impl().error) return *operation.impl().error;
    *program->add_operations() = operation.impl().message;
  }
  program->mutable_outputs()->Add(spec.outputs.begin(), spec.outputs.end());
  internal::Call call(options, core_->default_timeout);
  v1::CreateProgramResponse response;
  if (auto status = Stub(*core_)->CreateProgram(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  Program made = FromProto(response.program());
  made.num_tasks = response.num_tasks();
  for (const v1::ArraySpec& result : response.results())
    made.results.push_back(internal::FromProto(result));
  return made;
}

Result<std::vector<Program>> Client::ListPrograms(const CallOptions& options) {
  std::vector<Program> programs;
  v1::ListProgramsRequest request;
  do {
    internal::Call call(options, core_->default_timeout);
    v1::ListProgramsResponse response;
    if (auto status = Stub(*core_)->ListPrograms(call.context(), request, &response);
        !status.ok()) {
      return internal::ToError(status);
    }
    for (const auto& program : response.programs()) programs.push_back(FromProto(program));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return programs;
}

Result<void> Client::DeleteProgram(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::DeleteProgramRequest request;
  request.set_name(name);
  v1::DeleteProgramResponse response;
  if (auto status = Stub(*core_)->DeleteProgram(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return {};
}

}  // namespace stride
