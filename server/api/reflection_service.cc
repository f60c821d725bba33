#include "server/api/reflection_service.h"

#include <set>

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"

namespace stride::api {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

// Each holds a thread, even for unknown callers.
constexpr int kMaxReflectionCalls = 16;
// A name or two.
constexpr size_t kMaxReflectionBytes = 4 << 10;

bool ParseReflection(const grpc::ByteBuffer& bytes, ServerReflectionRequest* request) {
  std::vector<grpc::Slice> slices;
  if (bytes.Length() > kMaxReflectionBytes || !bytes.Dump(&slices).ok()) return false;
  std::string text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return request->ParseFromString(text);
}

// Adds the file and its imports, each once.
void AddFile(const FileDescriptor* file, std::set<std::string>* seen,
             ServerReflectionResponse* response) {
  if (!seen->insert(file->name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  response->mutable_file_descriptor_response()->add_file_descriptor_proto(
      proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) AddFile(file->dependency(i), seen, response);
}

void SetReflectionError(grpc::StatusCode code, const std::string& text,
                        ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(text);
}

void AnswerWithFile(const FileDescriptor* file, const std::string& name,
                    ServerReflectionResponse* response) {
  if (file == nullptr)
    return SetReflectionError(grpc::StatusCode::NOT_FOUND, "not known: " + name, response);
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
      return SetReflectionError(grpc::StatusCode::NOT_FOUND, "the contract has no extensions",
                                response);
    case ServerReflectionRequest::kAllExtensionNumbersOfType: {
      const std::string& name = request.all_extension_numbers_of_type();
      if (pool.FindMessageTypeByName(name) == nullptr)
        return SetReflectionError(grpc::StatusCode::NOT_FOUND, "not known: " + name, response);
      response->mutable_all_extension_numbers_response()->set_base_type_name(name);
      return;
    }
    default:
      return SetReflectionError(grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing",
                                response);
  }
}

ReflectionService::ReflectionService(CallEnvironment* environment,
                                     std::vector<std::string> services)
    : environment_(*environment), services_(std::move(services)) {
  // The messages of both versions are equal. gRPC's plugin for the older one would parse messages
  // of unknown callers, of any size, and give each a thread.
  for (const char* method : {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                             "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    AddMethod(new grpc::internal::RpcServiceMethod(
        method, grpc::internal::RpcMethod::BIDI_STREAMING,
        RawHandler([this](grpc::ServerContext*, RawStream* stream) {
          environment_.counters->Started("ServerReflection/ServerReflectionInfo");
          const grpc::Status status = Serve(stream);
          environment_.counters->Handled("ServerReflection/ServerReflectionInfo",
                                         status.error_code(), absl::ZeroDuration());
          return status;
        }).release()));
  }
}

grpc::Status ReflectionService::Serve(RawStream* stream) {
  const absl::Cleanup leave = [this] { --num_calls_; };
  if (++num_calls_ > kMaxReflectionCalls) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        absl::StrCat("too many calls at once; the limit is ", kMaxReflectionCalls));
  }
  grpc::ByteBuffer bytes;
  ServerReflectionRequest request;
  while (stream->Read(&bytes)) {
    if (!ParseReflection(bytes, &request)) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                          absl::StrCat("malformed: this is no ServerReflectionRequest of at most ",
                                       kMaxReflectionBytes, " bytes"));
    }
    ServerReflectionResponse response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    Answer(request, &response);
    const std::string text = response.SerializeAsString();
    const grpc::Slice slice(text);
    if (!stream->Write(grpc::ByteBuffer(&slice, 1))) break;
  }
  return grpc::Status::OK;
}

}  // namespace stride::api
