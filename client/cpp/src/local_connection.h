// One connection of LocalService: frames over a Unix socket.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/descriptor.h"
#include "stride/call_options.h"
#include "stride/result.h"
#include "stride/v1/local_service.pb.h"

namespace stride::internal {

// nullopt: no limit.
using LocalDeadline = std::optional<std::chrono::steady_clock::time_point>;
// The deadline `timeout` from now; zero: no limit.
inline LocalDeadline LocalDeadlineAfter(std::chrono::nanoseconds timeout) {
  if (timeout.count() == 0) return std::nullopt;
  return std::chrono::steady_clock::now() + timeout;
}

struct LocalMessage {
  v1::LocalFrame kind = v1::LOCAL_FRAME_UNSPECIFIED;
  // Valid until the connection's next Read.
  std::string_view bytes;

  bool ParseInto(google::protobuf::MessageLite* message) const {
    return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  }
};

// One thread may write while another reads; any thread may cancel. After an outcome other than
// kDone the connection is no longer usable.
class LocalConnection {
 public:
  // Limit of a frame's message in bytes: the contract's for requests, the client's for answers.
  static constexpr size_t kMaxMessageBytes = size_t{16} << 20;

  enum class Outcome {
    kDone,
    kEnded,  // by either side, or a malformed frame was received
    kTimedOut,
  };

  // Requests a connection from the daemon. UNIMPLEMENTED or RESOURCE_EXHAUSTED: none is available
  // now; other errors are the call's. `options` apply to the request; blocks for two round trips.
  static Result<std::unique_ptr<LocalConnection>> Open(Channels& channels,
                                                       const CallOptions& options);
  // `socket`: a connected stream.
  explicit LocalConnection(Descriptor socket);

  // `timeout`: the call's, sent to the daemon; zero: none. kEnded: the daemon does not get the
  // whole message.
  Outcome Write(v1::LocalFrame kind, const google::protobuf::MessageLite& message,
                std::chrono::nanoseconds timeout = {}, LocalDeadline deadline = {});
  // Sends a serialized message in place.
  Outcome Write(v1::LocalFrame kind, const grpc::ByteBuffer& message,
                std::chrono::nanoseconds timeout = {}, LocalDeadline deadline = {});
  // `watch`: polls for the frame before it sleeps (see Watch).
  Outcome Read(LocalMessage* message, bool watch, LocalDeadline deadline = {});
  // No unread bytes have arrived, and the daemon has not closed it.
  bool Quiet();
  // Both sides read the end of the stream from here on.
  void Cancel();

 private:
  Outcome Send(const void* data, size_t size, LocalDeadline deadline);
  // Reads until `size` bytes, at most the buffer's size, are available from `begin_` on.
  Outcome Buffer(size_t size, bool watch, LocalDeadline deadline);
  // Reads at least one byte.
  Outcome Receive(char* to, size_t size, bool watch, LocalDeadline deadline, size_t* received);
  // Waits until poll(2) reports `events` for the socket.
  Outcome Await(short events, LocalDeadline deadline);

  const Descriptor socket_;
  std::vector<char> out_;
  // Several small frames may arrive at once.
  std::vector<char> in_;
  size_t begin_ = 0, end_ = 0;  // range of unread bytes in in_
  std::vector<char> large_;     // a message that does not fit in_
};

}  // namespace stride::internal
