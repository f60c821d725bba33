#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"

namespace stride::api {

// Parses the HTTP/2 frames that one side of a connection sends. Pure; one thread.
class FrameWalk {
 public:
  struct Frame {
    uint8_t type = 0, flags = 0;
    uint32_t stream = 0;
    uint32_t size = 0;
  };

  explicit FrameWalk(uint64_t preface_bytes) : skip_(preface_bytes) {}

  // Calls begin(frame) for each frame that begins in these bytes, and data(frame, bytes, size) for
  // the payload of DATA frames in them.
  template <typename Begin, typename Data>
  void Take(const uint8_t* bytes, size_t size, Begin begin, Data data);

 private:
  static constexpr size_t kHeaderBytes = 9;

  Frame frame_;
  uint64_t skip_;  // bytes until the next frame begins
  uint8_t header_[kHeaderBytes];
  size_t header_bytes_ = 0;  // number of bytes in header_
};

// Computes the bytes of a connection's messages that gRPC 1.51 holds, from the frames of both
// directions. gRPC has no bound for them and no deadline for a message. Until the daemon answers on
// a stream, all bytes received on it are held. Initial metadata before an answer shows that the
// daemon reads the stream and takes complete messages; then only the incomplete message is held.
// The end of a stream, by either side, releases all. Pure; one thread.
class StreamBytes {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // The bytes that a call without a message takes in gRPC and the daemon.
  static constexpr int64_t kStreamBytes = 4 << 10;
  // Far more than may be open at once (front.cc).
  static constexpr size_t kMaxStreams = 2048;
  // The least rate at which a client must send a message, after an initial time for each message.
  static constexpr int64_t kBytesPerSecond = 64 << 10;

  // Counts bytes from the client, starting with its connection's preface. False: too many streams
  // are open.
  bool Received(const uint8_t* bytes, size_t size, Time now);
  // Counts bytes to the client.
  void Sent(const uint8_t* bytes, size_t size);

  int64_t held() const { return held_; }
  // True if a call's first message is not complete in its time. The time begins with the message's
  // first byte, or with the call if there is none. Streams that are read already do not count.
  bool Late(Time now, Duration time) const;

 private:
  struct Stream {
    int64_t held = 0;
    int64_t partial = 0;  // bytes received of the current message
    int64_t left = 0;     // bytes missing in it, once its length is known
    uint32_t length = 0;
    uint8_t prefix_bytes = 0;  // number of bytes received of its five
    bool taken = false;        // the daemon reads the stream
    bool has_message = false;  // a complete message has arrived
    Time begun;
  };

  static constexpr uint64_t kPrefaceBytes = 24;
  static constexpr uint8_t kPrefixBytes = 5;

  void TakeData(Stream& stream, const uint8_t* bytes, size_t size, Time now);
  void Hold(Stream& stream, int64_t bytes);
  void End(uint32_t stream);

  FrameWalk received_{kPrefaceBytes}, sent_{0};
  absl::flat_hash_map<uint32_t, Stream> streams_;
  uint32_t last_stream_ = 0;
  int64_t held_ = 0;
};

}  // namespace stride::api
