#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
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
  explicit FrameSocket(UniqueFd fd, absl::Duration idle = absl::Minutes(1));

  // The next frame; blocks. OUT_OF_RANGE at the end, INVALID_ARGUMENT for what is none: then there
  // is no next. Room for a large message is taken as its bytes come. `first`: of a call. When none
  // comes for too long the client can send no more, and what it had sent by then is read.
  absl::StatusOr<Frame> Read(bool first = false);
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
  // At least `size` bytes from begin_ on. False at the end.
  bool Fill(size_t size);
  // Some bytes into the buffer's free part; 0 or less at the end.
  int64_t Receive();

  const UniqueFd fd_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // what has come and was not read
  bool may_end_ = false;        // where nothing comes for too long
  std::string out_;
};

}  // namespace stride::api
