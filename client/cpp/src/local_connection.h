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

// Nothing: no limit.
using LocalDeadline = std::optional<std::chrono::steady_clock::time_point>;
// So long from now; zero: no limit.
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

// One thread may write while another reads; any may cancel. After anything but kDone the
// connection is of no further use.
class LocalConnection {
 public:
  // A frame's message is no larger: the contract's limit for the client, and the client's for
  // answers.
  static constexpr size_t kMaxMessageBytes = size_t{16} << 20;

  enum class Outcome {
    kDone,
    kEnded,  // by either side, or what came was no frame
    kTimedOut,
  };

  // Asks the daemon for one. UNIMPLEMENTED and RESOURCE_EXHAUSTED: there is none to be had now.
  // Others are what such a call may end with. `options` are of the asking; blocks for two round
  // trips.
  static Result<std::unique_ptr<LocalConnection>> Open(Channels& channels,
                                                       const CallOptions& options);
  // `socket`: a connected stream.
  explicit LocalConnection(Descriptor socket);

  // `timeout` is the call's, for the daemon; zero: none. kEnded: the daemon does not get all of
  // it.
  Outcome Write(v1::LocalFrame kind, const google::protobuf::MessageLite& message,
                std::chrono::nanoseconds timeout = {}, LocalDeadline deadline = {});
  // A message that is serialized already, sent from where it lies.
  Outcome Write(v1::LocalFrame kind, const grpc::ByteBuffer& message,
                std::chrono::nanoseconds timeout = {}, LocalDeadline deadline = {});
  // `watch`: looks for the frame before it sleeps until there is one (see Watch).
  Outcome Read(LocalMessage* message, bool watch, LocalDeadline deadline = {});
  // Nothing has come that was not read, nor has the daemon closed it.
  bool Quiet();
  // Both sides read the end from here on.
  void Cancel();

 private:
  Outcome Send(const void* data, size_t size, LocalDeadline deadline);
  // Until `size` bytes, at most the buffer's, are there from `begin_` on.
  Outcome Buffer(size_t size, bool watch, LocalDeadline deadline);
  // Some bytes, at least one.
  Outcome Receive(char* to, size_t size, bool watch, LocalDeadline deadline, size_t* received);
  // Until poll(2) tells `events` of the socket.
  Outcome Await(short events, LocalDeadline deadline);

  const Descriptor socket_;
  std::vector<char> out_;
  // Several small frames may come at once.
  std::vector<char> in_;
  size_t begin_ = 0, end_ = 0;  // what is there of it
  std::vector<char> large_;     // a message that `in_` is too small for
};

}  // namespace stride::internal
