#include "server/api/raw_methods.h"

#include <grpcpp/support/method_handler.h>

#include "server/base/error.h"

namespace stride::api {

bool ResponseWriter::Write(const google::protobuf::MessageLite& response) {
  grpc::ByteBuffer bytes;
  return SerializeResponse(response, &bytes).ok() && stream_.Write(bytes);
}

absl::Status ResponseWriter::WriteLast(const Call& call,
                                       const google::protobuf::MessageLite& response) {
  grpc::ByteBuffer bytes;
  if (absl::Status status = SerializeResponse(response, &bytes); !status.ok()) return status;
  if (stream_.Write(bytes, grpc::WriteOptions().set_last_message())) return absl::OkStatus();
  return call.EndOfWait();
}

absl::Status ReceiveRequest(const Call& call, RawStream* stream, const MessageShape& shape,
                            const RequestLimits& limits, ByteBudget::Charge* charge,
                            google::protobuf::MessageLite* request) {
  grpc::ByteBuffer bytes;
  if (stream->Read(&bytes)) return ParseRequest(bytes, shape, limits, charge, request);
  if (call.cancelled()) return call.EndOfWait();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "", "the call has no message");
}

std::unique_ptr<grpc::internal::MethodHandler> RawHandler(
    std::function<grpc::Status(grpc::ServerContext*, RawStream*)> serve) {
  using Handler = grpc::internal::TemplatedBidiStreamingHandler<RawStream, false>;
  return std::make_unique<Handler>(std::move(serve));
}

}  // namespace stride::api
