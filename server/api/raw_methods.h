#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/sync_stream.h>

#include "google/protobuf/descriptor.h"
#include "server/api/call.h"
#include "server/api/request_parser.h"

namespace stride::api {

// gRPC's own handlers read and parse a request before our code runs. These register each method as
// a stream of bytes, so that gRPC passes on a call as soon as its metadata has arrived. Then the
// caller is authenticated, and only a known caller's message is received, checked and parsed.

using RawStream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// Receives the messages of a call with several responses.
class ResponseWriter {
 public:
  explicit ResponseWriter(RawStream* stream) : stream_(*stream) {}
  // Blocks while the client does not read. False: the client is gone.
  bool Write(const google::protobuf::MessageLite& response);
  // The same for a serialized message, whose bytes may be borrowed.
  bool WriteBytes(const grpc::ByteBuffer& response) { return stream_.Write(response); }
  // Like Write, for the last message, which is sent together with the call's status. An error
  // becomes the call's status.
  absl::Status WriteLast(const Call& call, const google::protobuf::MessageLite& response);

 private:
  RawStream& stream_;
};

// Blocks until the call's one request is complete, and parses it.
absl::Status ReceiveRequest(const Call& call, RawStream* stream, const MessageShape& shape,
                            const RequestLimits& limits, ByteBudget::Charge* charge,
                            google::protobuf::MessageLite* request);

// A handler that serves streams of bytes by `serve`.
std::unique_ptr<grpc::internal::MethodHandler> RawHandler(
    std::function<grpc::Status(grpc::ServerContext*, RawStream*)> serve);

// Base class of each service's adapter, instead of the generated `Service` alone. `method` is a
// literal such as "ArrayService/GetArray"; bodies return absl::Status and run on the call's thread.
template <typename Service>
class RawService : public Service {
 protected:
  explicit RawService(CallEnvironment* environment) : environment_(*environment) {}

  // One request, one response: body(Call&, const Request&, Response*).
  template <typename Request, typename Response, typename Body>
  void Unary(const char* method, const RequestLimits& limits, Body body) {
    OnCall<Request>(method, limits,
                    [body](Call& call, const Request& request, ResponseWriter* writer) {
                      Response response;
                      absl::Status status = body(call, request, &response);
                      return status.ok() ? writer->WriteLast(call, response) : status;
                    });
  }

  // One request, any number of responses: body(Call&, const Request&, ResponseWriter*).
  template <typename Request, typename Body>
  void Responses(const char* method, const RequestLimits& limits, Body body) {
    OnCall<Request>(method, limits, body);
  }

  // Any number of requests and responses: body(Call&, RawStream*).
  template <typename Body>
  void Stream(const char* method, Body body) {
    OnStream(method, [this, method, body](grpc::ServerContext* context, RawStream* stream) {
      Call call(environment_, context, method);
      return call.Finish(call.status().ok() ? body(call, stream) : call.status());
    });
  }

  // Marks a method for a completion queue; returns its index for RequestAsyncBidiStreaming.
  int Asynchronous(const char* method) {
    OnStream(method, [](grpc::ServerContext*, RawStream*) { return grpc::Status(); });
    this->MarkMethodAsync(IndexOf(method));
    return IndexOf(method);
  }

  CallEnvironment& environment_;

 private:
  static int IndexOf(const char* method) {
    const std::string name(method);
    const size_t slash = name.find('/');
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        "stride.v1." + name.substr(0, slash));
    return service->FindMethodByName(name.substr(slash + 1))->index();
  }

  void OnStream(const char* method,
                std::function<grpc::Status(grpc::ServerContext*, RawStream*)> serve) {
    this->MarkMethodStreamed(IndexOf(method), RawHandler(std::move(serve)).release());
  }

  template <typename Request, typename Body>
  void OnCall(const char* method, const RequestLimits& limits, Body body) {
    OnStream(method, [this, method, limits, body](grpc::ServerContext* context, RawStream* stream) {
      Call call(environment_, context, method);
      absl::Status status = call.status();
      if (!status.ok()) return call.Finish(status);
      ByteBudget::Charge charge(environment_.bytes, call.tenant());
      Request request;
      status = ReceiveRequest(call, stream, ShapeOf<Request>(), limits, &charge, &request);
      ResponseWriter writer(stream);
      if (status.ok()) status = body(call, request, &writer);
      return call.Finish(status);
    });
  }
};

}  // namespace stride::api
