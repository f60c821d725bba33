// A streaming call whose messages are byte buffers, so that bulk bytes are neither copied into
// messages nor out of them.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>

#include "client/cpp/src/call.h"

namespace stride::internal {

// Blocking; one thread at a time. The wire is that of the method's ordinary stub.
class RawCall {
 public:
  // `method`: `/stride.v1.ArrayService/PutArray`. Starts the call at once.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
          const CallOptions& options, std::chrono::nanoseconds default_timeout);
  ~RawCall();

  // False: the stream has ended; Finish tells why.
  bool Write(const grpc::ByteBuffer& message);
  bool WritesDone();
  bool Read(grpc::ByteBuffer* message);
  grpc::Status Finish();
  void Cancel() { call_.context()->TryCancel(); }

 private:
  bool Next();

  Call call_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace stride::internal
