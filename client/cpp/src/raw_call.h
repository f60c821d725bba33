// A streaming call whose messages are byte buffers, so that bulk bytes are neither copied into
// messages nor out of them.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "client/cpp/src/call.h"
#include "stride/result.h"

namespace stride::internal {

// Blocking; one thread at a time, but for Cancel. Destroyed before its end it is cancelled.
class RawCall {
 public:
  enum class Method { kPutArray, kFetchArray };

  virtual ~RawCall() = default;

  // A serialized message. False: the call has ended or is about to; Finish tells why.
  virtual bool Write(const grpc::ByteBuffer& message) = 0;
  virtual bool WritesDone() = 0;
  // False: there are no more messages, and Finish tells why.
  virtual bool Read(grpc::ByteBuffer* message) = 0;
  // How it has ended.
  virtual Result<void> Finish() = 0;
  virtual void Cancel() = 0;
};

// The wire is that of the method's ordinary stub. Starts the call at once.
std::unique_ptr<RawCall> RawCallByGrpc(const std::shared_ptr<grpc::Channel>& channel,
                                       RawCall::Method method, const CallOptions& options,
                                       std::chrono::nanoseconds default_timeout);

}  // namespace stride::internal
