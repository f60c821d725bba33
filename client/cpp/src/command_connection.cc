#include "client/cpp/src/command_connection.h"

#include <grpcpp/client_context.h>

#include <atomic>

#include "client/cpp/src/status.h"
#include "google/rpc/status.pb.h"
#include "stride/v1/compute_service.grpc.pb.h"

namespace stride::internal {
namespace {

Error EndedWithoutReason() {
  return LocalError(Code::kUnavailable, "The daemon ended the command stream");
}

class GrpcCommandConnection : public CommandConnection {
 public:
  explicit GrpcCommandConnection(Channels& channels)
      : stub_(v1::ComputeService::NewStub(channels.control())),
        stream_(stub_->Execute(&context_)) {}

  bool Write(const v1::ExecuteRequest& request) override { return stream_->Write(request); }
  bool Read(v1::ExecuteResponse* response, bool) override { return stream_->Read(response); }
  Error Finish() override {
    const grpc::Status status = stream_->Finish();
    return status.ok() ? EndedWithoutReason() : ToError(status);
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<v1::ComputeService::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>> stream_;
};

class LocalCommandConnection : public CommandConnection {
 public:
  explicit LocalCommandConnection(std::unique_ptr<LocalConnection> connection)
      : connection_(std::move(connection)) {}

  bool Write(const v1::ExecuteRequest& request) override {
    return connection_->Write(v1::LOCAL_FRAME_EXECUTE, request) == LocalConnection::Outcome::kDone;
  }

  bool Read(v1::ExecuteResponse* response, bool watch) override {
    LocalMessage message;
    if (connection_->Read(&message, watch) != LocalConnection::Outcome::kDone) return false;
    if (message.kind == v1::LOCAL_FRAME_STATUS) (void)message.ParseInto(&status_);
    return message.kind == v1::LOCAL_FRAME_EXECUTE && message.ParseInto(response);
  }

  Error Finish() override {
    // Ends a blocked write.
    connection_->Cancel();
    if (status_.code() != 0) return ToError(status_);
    if (cancelled_) return LocalError(Code::kCancelled, "The command stream was cancelled");
    return EndedWithoutReason();
  }

  void Cancel() override {
    cancelled_ = true;
    connection_->Cancel();
  }

 private:
  const std::unique_ptr<LocalConnection> connection_;
  std::atomic<bool> cancelled_ = false;
  google::rpc::Status status_;
};

}  // namespace

std::unique_ptr<CommandConnection> ExecuteByGrpc(Channels& channels) {
  return std::make_unique<GrpcCommandConnection>(channels);
}

std::unique_ptr<CommandConnection> ExecuteLocally(std::unique_ptr<LocalConnection> connection) {
  return std::make_unique<LocalCommandConnection>(std::move(connection));
}

}  // namespace stride::internal
