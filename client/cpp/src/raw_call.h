// A streaming call with byte buffers as messages, so that bulk bytes are copied neither into
// messages nor out of them.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "client/cpp/src/call.h"
#include "stride/result.h"

namespace stride::internal {

// Blocking; one thread at a time, except Cancel. Destruction before the end cancels the call.
class RawCall {
 public:
  enum class Method { kPutArray, kFetchArray };

  virtual ~RawCall() = default;

  // Sends a serialized message. False: the call has ended or is about to; Finish returns the
  // reason.
  virtual bool Write(const grpc::ByteBuffer& message) = 0;
  virtual bool WritesDone() = 0;
  // False: there are no more messages, and Finish returns the result.
  virtual bool Read(grpc::ByteBuffer* message) = 0;
  // The call's final status.
  virtual Result<void> Finish() = 0;
  virtual void Cancel() = 0;
};

// The wire format is that of the method's ordinary stub. Starts the call at once.
std::unique_ptr<RawCall> RawCallByGrpc(const std::shared_ptr<grpc::Channel>& channel,
                                       RawCall::Method method, const CallOptions& options,
                                       std::chrono::nanoseconds default_timeout);

}  // namespace stride::internal
