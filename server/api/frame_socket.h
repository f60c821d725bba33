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
  // Valid until the next is read.
  std::string_view message;
};

// The daemon's end of a local connection: frames as proto/stride/v1/local_service.proto has them.
// One thread reads, another may write meanwhile; the rest any thread may ask.
class FrameSocket {
 public:
  static constexpr size_t kHeaderBytes = 16;
  static constexpr size_t kMaxMessageBytes = 16 << 20;
  static constexpr size_t kBufferBytes = 64 << 10;

  // A connected stream socket that blocks. `idle`: at most so long is a first frame waited for.
  // `frame_time`: and the rest of one that has begun; a large one has a second more for each 64
  // KiB. Room for large messages is charged to `room`.
  explicit FrameSocket(UniqueFd fd, absl::Duration idle = absl::Minutes(1),
                       absl::Duration frame_time = absl::Minutes(1), ByteBudget::Charge room = {});

  // The next frame; blocks. OUT_OF_RANGE at the end, INVALID_ARGUMENT for what is none: then there
  // is no next. RESOURCE_EXHAUSTED where there is no room for it: it was dropped, and the next one
  // can be read. Room for a large message is taken as its bytes come. `first`: of a call. When none
  // comes for too long the client can send no more, and what it had sent by then is read.
  absl::StatusOr<Frame> Read(bool first = false);
  // The next frame, without its message, which needs no room. False at the end.
  bool Drop(v1::LocalFrame* kind);
  // The kind of the frame that was read or dropped last.
  v1::LocalFrame last_kind() const { return last_kind_; }
  // Blocks while the client does not read. False: it is gone.
  bool Write(v1::LocalFrame kind, const google::protobuf::MessageLite& message);
  // A serialized message, sent from where it lies.
  bool Write(v1::LocalFrame kind, const grpc::ByteBuffer& message);
  // Gives back what large messages took. Nothing of the last frame may be needed any more.
  void Shrink();

  // The client has closed its end.
  bool hung_up() const;
  // What is under way and all that follows ends. Not to be used again.
  void Shutdown();
  // As Shutdown, for reading alone: what is under way may still be answered.
  void StopReading();

 private:
  bool Send(const void* data, size_t size);
  // At least `size` bytes from begin_ on. OUT_OF_RANGE at the end, RESOURCE_EXHAUSTED without room.
  absl::Status Fill(size_t size);
  // Reads and forgets so many bytes from begin_ on.
  bool Discard(size_t size);
  absl::Status ReadHeader(size_t* size, absl::Duration* timeout);
  // Some bytes into the buffer's free part; 0 or less at the end.
  int64_t Receive();
  bool Late() const;

  const UniqueFd fd_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // what has come and was not read
  bool may_end_ = false;        // where nothing comes for too long
  // When the frame that has begun must be complete.
  std::optional<std::chrono::steady_clock::time_point> due_;
  const std::chrono::steady_clock::duration frame_time_;
  v1::LocalFrame last_kind_ = v1::LOCAL_FRAME_UNSPECIFIED;
  ByteBudget::Charge room_;
  std::string out_;
};

}  // namespace stride::api
