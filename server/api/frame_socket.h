#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "server/api/byte_budget.h"
#include "server/base/unique_fd.h"
#include "stride/v1/local_service.pb.h"

namespace stride::api {

struct Frame {
  v1::LocalFrame kind = v1::LOCAL_FRAME_UNSPECIFIED;
  absl::Duration timeout;  // zero: none
  // Valid until the next frame is read.
  std::string_view message;
};

// The daemon's end of a local connection: frames as in proto/stride/v1/local_service.proto. One
// thread reads, another may write at the same time; any thread may call the other methods.
class FrameSocket {
 public:
  static constexpr size_t kHeaderBytes = 16;
  static constexpr size_t kMaxMessageBytes = 16 << 20;
  static constexpr size_t kBufferBytes = 64 << 10;

  // `fd`: a connected, blocking stream socket. `idle`: longest wait for a call's first frame.
  // `frame_time`: longest time for the rest of a frame, plus a second for each 64 KiB. Memory for
  // large messages is charged to `room`.
  explicit FrameSocket(UniqueFd fd, absl::Duration idle = absl::Minutes(1),
                       absl::Duration frame_time = absl::Minutes(1), ByteBudget::Charge room = {});

  // Reads the next frame; blocks. OUT_OF_RANGE at the end, INVALID_ARGUMENT for a malformed frame:
  // then no more can be read. RESOURCE_EXHAUSTED without room: the frame was dropped, and the next
  // one can be read. Memory for a large message grows as its bytes arrive. `first`: the first frame
  // of a call; after too long a wait for it the client can send no more, and bytes sent by then are
  // read.
  absl::StatusOr<Frame> Read(bool first = false);
  // Reads the next frame without its message, which needs no room. False at the end.
  bool Drop(v1::LocalFrame* kind);
  // The kind of the frame that was read or dropped last.
  v1::LocalFrame last_kind() const { return last_kind_; }
  // Blocks while the client does not read. False: the client is gone.
  bool Write(v1::LocalFrame kind, const google::protobuf::MessageLite& message);
  // Sends a serialized message in place.
  bool Write(v1::LocalFrame kind, const grpc::ByteBuffer& message);
  // Frees the memory of large messages; invalidates the last frame.
  void Shrink();

  // The client has closed its end.
  bool hung_up() const;
  // Ends all reads and writes, present and future. The socket is unusable afterwards.
  void Shutdown();
  // Ends all reads; calls in flight may still be answered.
  void StopReading();

 private:
  bool Send(const void* data, size_t size);
  // Reads until at least `size` bytes are available from begin_ on. OUT_OF_RANGE at the end,
  // RESOURCE_EXHAUSTED without room.
  absl::Status Fill(size_t size);
  // Reads and drops this many bytes from begin_ on.
  bool Discard(size_t size);
  absl::Status ReadHeader(size_t* size, absl::Duration* timeout);
  // Reads bytes into the buffer's free part; 0 or less at the end.
  int64_t Receive();
  bool Late() const;

  const UniqueFd fd_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // range of received and unread bytes
  bool may_end_ = false;        // stop reading if nothing arrives for too long
  // When the frame that has begun must be complete.
  std::optional<std::chrono::steady_clock::time_point> due_;
  const std::chrono::steady_clock::duration frame_time_;
  v1::LocalFrame last_kind_ = v1::LOCAL_FRAME_UNSPECIFIED;
  ByteBudget::Charge room_;
  std::string out_;
};

}  // namespace stride::api
