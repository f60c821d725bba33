#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace stride::api {

// Parses the HTTP/2 frames that a client sends and measures each header block: a HEADERS frame and
// its CONTINUATION frames up to the last. Also counts the calls that the client resets. Reads only
// the nine bytes of frame headers, so that the cost grows with frames, not with bytes. Pure; one
// thread.
class HeaderBlocks {
 public:
  // Sixteen times the limit of a call's headers (front.cc): below it gRPC refuses the call and the
  // connection continues. More frames than any client splits it into.
  static constexpr uint64_t kMaxBytes = 256 << 10;
  static constexpr int kMaxFrames = 32;

  // Takes the connection's next bytes; its preface comes first. False, from then on: a block is too
  // large, by the lengths that its frames declare.
  bool Take(const uint8_t* bytes, size_t size);
  // RST_STREAM frames that have begun since the last call.
  uint64_t TakeResets() { return std::exchange(num_resets_, 0); }

 private:
  static constexpr size_t kPrefaceBytes = 24;
  static constexpr size_t kFrameHeaderBytes = 9;

  bool BeginFrame();

  uint64_t skip_ = kPrefaceBytes;  // bytes until the next frame begins
  uint8_t frame_[kFrameHeaderBytes];
  size_t frame_bytes_ = 0;    // number of bytes in frame_
  uint64_t block_bytes_ = 0;  // bytes of the current block
  int block_frames_ = 0;
  bool too_large_ = false;
  uint64_t num_resets_ = 0;
};

}  // namespace stride::api
