#include "client/cpp/src/call.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/status.h"
#include "stride/client.h"
#include "stride/v1/kernel_service.grpc.pb.h"

namespace stride {
namespace {

std::unique_ptr<v1::KernelService::Stub> Stub(internal::Core& core) {
  return v1::KernelService::NewStub(core.channels.control());
}

}  // namespace

Result<Module> Client::CreateModule(const ModuleSpec& spec, const CallOptions& options) {
  v1::CreateModuleRequest request;
  request.set_module_id(spec.id);
  request.set_device_kind(spec.device_kind);
  v1::Module* module = request.mutable_module();
  switch (spec.code_kind) {
    case CodeKind::kSource:
      module->set_source(spec.code);
      break;
    case CodeKind::kPtx:
      module->set_ptx(spec.code);
      break;
    case CodeKind::kBinary:
      module->set_binary(spec.code);
      break;
    case CodeKind::kModule:
      return internal::LocalError(Code::kInvalidArgument, "A module is not made from a module");
  }
  for (const auto& option : spec.compiler_options) module->add_options(option);
  for (const auto& entry : spec.entries) module->add_entries(entry);
  for (const auto& global : spec.globals) module->add_globals(global);
  internal::Call call(options, core_->default_timeout);
  v1::CreateModuleResponse response;
  if (auto status = Stub(*core_)->CreateModule(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return internal::FromProto(response.module());
}

Result<Module> Client::GetModule(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::GetModuleRequest request;
  request.set_name(name);
  v1::GetModuleResponse response;
  if (auto status = Stub(*core_)->GetModule(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return internal::FromProto(response.module());
}

Result<std::vector<Module>> Client::ListModules(const CallOptions& options) {
  std::vector<Module> modules;
  v1::ListModulesRequest request;
  do {
    internal::Call call(options, core_->default_timeout);
    v1::ListModulesResponse response;
    if (auto status = Stub(*core_)->ListModules(call.context(), request, &response); !status.ok()) {
      return internal::ToError(status);
    }
    for (const auto& module : response.modules()) modules.push_back(internal::FromProto(module));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return modules;
}

Result<void> Client::DeleteModule(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::DeleteModuleRequest request;
  request.set_name(name);
  v1::DeleteModuleResponse response;
  if (auto status = Stub(*core_)->DeleteModule(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return {};
}

}  // namespace stride
