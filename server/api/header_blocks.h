#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace stride::api {

// Follows the HTTP/2 frames that a client sends and measures each header block: a HEADERS frame and
// the CONTINUATION frames behind it until one says that it was the last. Counts the calls that it
// resets on the way. Looks at frames' first nine bytes alone, so that its cost goes with frames and
// not with bytes. Pure; one thread.
class HeaderBlocks {
 public:
  // Sixteen times what a call may say of itself (front.cc): up to here gRPC refuses the call and
  // the connection goes on. And more frames than anybody cuts it into.
  static constexpr uint64_t kMaxBytes = 256 << 10;
  static constexpr int kMaxFrames = 32;

  // The next bytes of the connection, its preface being the first. False: a block has become too
  // large, counted by the lengths that its frames declare; and from then on.
  bool Take(const uint8_t* bytes, size_t size);
  // RST_STREAM frames that have begun since this was asked last.
  uint64_t TakeResets() { return std::exchange(num_resets_, 0); }

 private:
  static constexpr size_t kPrefaceBytes = 24;
  static constexpr size_t kFrameHeaderBytes = 9;

  bool BeginFrame();

  uint64_t skip_ = kPrefaceBytes;  // bytes until the next frame begins
  uint8_t frame_[kFrameHeaderBytes];
  size_t frame_bytes_ = 0;    // of frame_ that are there
  uint64_t block_bytes_ = 0;  // of the block that has not ended
  int block_frames_ = 0;
  bool too_large_ = false;
  uint64_t num_resets_ = 0;
};

}  // namespace stride::api
