#include "client/cpp/src/call.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/operand_impl.h"
#include "client/cpp/src/status.h"
#include "stride/client.h"
#include "stride/v1/function_service.grpc.pb.h"

namespace stride {
namespace {

std::unique_ptr<v1::FunctionService::Stub> Stub(internal::Core& core) {
  return v1::FunctionService::NewStub(core.channels.control());
}

void SetDeviceFunction(const FunctionBody& body, v1::DeviceFunctionBody* out) {
  out->set_source(body.source);
  out->set_entry(body.entry);
}

void SetBody(const FunctionBody& body, v1::FunctionBody* out) {
  if (body.texts.empty()) return SetDeviceFunction(body, out->mutable_device_function());
  auto* expression = out->mutable_expression();
  expression->set_text(body.texts[0]);
  for (size_t i = 1; i < body.texts.size(); ++i) expression->add_more_texts(body.texts[i]);
  for (const auto& name : body.parameters) expression->add_parameters(name);
}

void Set(const UfuncDefinition& definition, v1::Function* out) {
  auto* ufunc = out->mutable_ufunc();
  ufunc->mutable_signatures()->Assign(definition.signatures.begin(), definition.signatures.end());
  SetBody(definition.body, ufunc->mutable_body());
  if (definition.identity)
    *ufunc->mutable_identity() = definition.identity->impl().message.scalar();
  ufunc->set_associative(definition.associative);
}

void Set(const ReductionDefinition& definition, v1::Function* out) {
  auto* reduction = out->mutable_reduction();
  reduction->mutable_signatures()->Assign(definition.signatures.begin(),
                                          definition.signatures.end());
  if (definition.map) SetBody(*definition.map, reduction->mutable_map());
  SetBody(definition.combine, reduction->mutable_combine());
  if (definition.finish) SetBody(*definition.finish, reduction->mutable_finish());
  if (definition.identity)
    *reduction->mutable_identity() = definition.identity->impl().message.scalar();
}

void Set(const GufuncDefinition& definition, v1::Function* out) {
  auto* gufunc = out->mutable_gufunc();
  gufunc->set_layout(definition.layout);
  gufunc->mutable_signatures()->Assign(definition.signatures.begin(), definition.signatures.end());
  SetDeviceFunction(definition.body, gufunc->mutable_body());
}

}  // namespace

Result<std::string> Client::CreateFunction(const FunctionSpec& spec, const CallOptions& options) {
  v1::CreateFunctionRequest request;
  request.set_function_id(spec.id);
  request.set_device_kind(spec.device_kind);
  std::visit([&](const auto& definition) { Set(definition, request.mutable_function()); },
             spec.definition);
  internal::Call call(options, core_->default_timeout);
  v1::CreateFunctionResponse response;
  if (auto status = Stub(*core_)->CreateFunction(call.context(), request, &response); !status.ok())
    return internal::ToError(status);
  return response.function().name();
}

Result<std::vector<std::string>> Client::ListFunctions(const CallOptions& options) {
  std::vector<std::string> names;
  v1::ListFunctionsRequest request;
  do {
    internal::Call call(options, core_->default_timeout);
    v1::ListFunctionsResponse response;
    if (auto status = Stub(*core_)->ListFunctions(call.context(), request, &response); !status.ok())
      return internal::ToError(status);
    for (const auto& function : response.functions()) names.push_back(function.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return names;
}

Result<void> Client::DeleteFunction(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::DeleteFunctionRequest request;
  request.set_name(name);
  v1::DeleteFunctionResponse response;
  if (auto status = Stub(*core_)->DeleteFunction(call.context(), request, &response); !status.ok())
    return internal::ToError(status);
  return {};
}

}  // namespace stride
