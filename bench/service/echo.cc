#include "bench/service/echo.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstdio>
#include <cstring>

#include "bench/service/process.h"

namespace stride::bench {
namespace {

constexpr char kMethod[] = "/stride.bench.Echo/Echo";

// The first four bytes of a request are the size of its reply.
class EchoService : public grpc::Service {
 public:
  EchoService() {
    using grpc::internal::RpcMethod;
    using Handler =
        grpc::internal::RpcMethodHandler<EchoService, grpc::ByteBuffer, grpc::ByteBuffer>;
    AddMethod(new grpc::internal::RpcServiceMethod(
        kMethod, RpcMethod::NORMAL_RPC,
        new Handler([](EchoService* self, grpc::ServerContext*, const grpc::ByteBuffer* request,
                       grpc::ByteBuffer* reply) { return self->Echo(*request, reply); },
                    this)));
  }

 private:
  grpc::Status Echo(const grpc::ByteBuffer& request, grpc::ByteBuffer* reply) {
    grpc::Slice slice;
    uint32_t size = 0;
    if (!request.DumpToSingleSlice(&slice).ok() || slice.size() < sizeof(size)) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "too short"};
    }
    std::memcpy(&size, slice.begin(), sizeof(size));
    const std::string bytes(size, 'x');
    const grpc::Slice out(bytes);
    *reply = grpc::ByteBuffer(&out, 1);
    return grpc::Status::OK;
  }
};

}  // namespace

int ServeEcho(const std::string& folder) {
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("unix:" + folder + "/echo", grpc::InsecureServerCredentials());
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::printf("serving 127.0.0.1:%d\n", port);
  std::fflush(stdout);
  WaitForEndOfInput();
  server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  return 0;
}

struct EchoClient::Impl {
  std::shared_ptr<grpc::Channel> channel;
  grpc::internal::RpcMethod method{kMethod, grpc::internal::RpcMethod::NORMAL_RPC};
};

EchoClient::EchoClient(const std::string& target) : impl_(std::make_unique<Impl>()) {
  impl_->channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
}

EchoClient::~EchoClient() = default;

bool EchoClient::Call(uint32_t request_bytes, uint32_t reply_bytes) {
  std::string bytes(std::max<size_t>(request_bytes, sizeof(reply_bytes)), 'x');
  std::memcpy(bytes.data(), &reply_bytes, sizeof(reply_bytes));
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer reply;
  grpc::ClientContext context;
  const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer,
                                                                grpc::ByteBuffer, grpc::ByteBuffer>(
      impl_->channel.get(), impl_->method, &context, request, &reply);
  return status.ok() && reply.Length() == reply_bytes;
}

}  // namespace stride::bench
