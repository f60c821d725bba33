#include "server/api/reflection_service.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace stride::api {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

// The file and what it imports, each once.
void AddFile(const FileDescriptor* file, std::set<std::string>* seen,
             ServerReflectionResponse* response) {
  if (!seen->insert(file->name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  response->mutable_file_descriptor_response()->add_file_descriptor_proto(
      proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) AddFile(file->dependency(i), seen, response);
}

void SetError(grpc::StatusCode code, const std::string& text, ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(text);
}

void AnswerWithFile(const FileDescriptor* file, const std::string& name,
                    ServerReflectionResponse* response) {
  if (file == nullptr) return SetError(grpc::StatusCode::NOT_FOUND, "not known: " + name, response);
  std::set<std::string> seen;
  AddFile(file, &seen, response);
}

}  // namespace

void ReflectionService::Answer(const ServerReflectionRequest& request,
                               ServerReflectionResponse* response) const {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services_)
        response->mutable_list_services_response()->add_service()->set_name(name);
      return;
    case ServerReflectionRequest::kFileByFilename:
      return AnswerWithFile(pool.FindFileByName(request.file_by_filename()),
                            request.file_by_filename(), response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return AnswerWithFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                            request.file_containing_symbol(), response);
    case ServerReflectionRequest::kFileContainingExtension:
      return SetError(grpc::StatusCode::NOT_FOUND, "the contract has no extensions", response);
    case ServerReflectionRequest::kAllExtensionNumbersOfType: {
      const std::string& name = request.all_extension_numbers_of_type();
      if (pool.FindMessageTypeByName(name) == nullptr)
        return SetError(grpc::StatusCode::NOT_FOUND, "not known: " + name, response);
      response->mutable_all_extension_numbers_response()->set_base_type_name(name);
      return;
    }
    default:
      return SetError(grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing", response);
  }
}

grpc::Status ReflectionService::ServerReflectionInfo(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<ServerReflectionResponse, ServerReflectionRequest>* stream) {
  environment_.counters->Started("ServerReflection/ServerReflectionInfo");
  ServerReflectionRequest request;
  while (stream->Read(&request)) {
    ServerReflectionResponse response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    Answer(request, &response);
    if (!stream->Write(response)) break;
  }
  environment_.counters->Handled("ServerReflection/ServerReflectionInfo", 0, absl::ZeroDuration());
  return grpc::Status::OK;
}

}  // namespace stride::api
