#include "client/cpp/src/raw_call.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include "client/cpp/src/status.h"

namespace stride::internal {
namespace {

const char* NameOf(RawCall::Method method) {
  return method == RawCall::Method::kPutArray ? "/stride.v1.ArrayService/PutArray"
                                              : "/stride.v1.ArrayService/FetchArray";
}

class GrpcRawCall final : public RawCall {
 public:
  GrpcRawCall(const std::shared_ptr<grpc::Channel>& channel, Method method,
              const CallOptions& options, std::chrono::nanoseconds default_timeout)
      : call_(options, default_timeout), stub_(std::shared_ptr<grpc::ChannelInterface>(channel)) {
    stream_ = stub_.PrepareCall(call_.context(), NameOf(method), &queue_);
    stream_->StartCall(this);
    started_ = Next();
  }

  ~GrpcRawCall() override {
    if (!finished_) {
      Cancel();
      (void)Finish();
    }
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  bool Write(const grpc::ByteBuffer& message) override {
    if (!started_) return false;
    stream_->Write(message, this);
    return Next();
  }

  bool WritesDone() override {
    if (!started_) return false;
    stream_->WritesDone(this);
    return Next();
  }

  bool Read(grpc::ByteBuffer* message) override {
    if (!started_) return false;
    stream_->Read(message, this);
    return Next();
  }

  Result<void> Finish() override {
    finished_ = true;
    grpc::Status status;
    stream_->Finish(&status, this);
    Next();
    if (!status.ok()) return ToError(status);
    return {};
  }

  void Cancel() override { call_.context()->TryCancel(); }

 private:
  // One operation is in flight at a time, so the next event is its end.
  bool Next() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  Call call_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<RawCall> RawCallByGrpc(const std::shared_ptr<grpc::Channel>& channel,
                                       RawCall::Method method, const CallOptions& options,
                                       std::chrono::nanoseconds default_timeout) {
  return std::make_unique<GrpcRawCall>(channel, method, options, default_timeout);
}

}  // namespace stride::internal
