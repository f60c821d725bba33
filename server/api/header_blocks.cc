#include "server/api/header_blocks.h"

#include <algorithm>

namespace stride::api {
namespace {

constexpr uint8_t kHeaders = 1, kRstStream = 3, kContinuation = 9;
constexpr uint8_t kEndHeaders = 4;

}  // namespace

bool HeaderBlocks::Take(const uint8_t* bytes, size_t size) {
  while (size > 0 && !too_large_) {
    if (skip_ > 0) {
      size_t skipped = std::min<uint64_t>(skip_, size);
      skip_ -= skipped;
      bytes += skipped;
      size -= skipped;
      continue;
    }
    size_t taken = std::min(kFrameHeaderBytes - frame_bytes_, size);
    std::copy_n(bytes, taken, frame_ + frame_bytes_);
    frame_bytes_ += taken;
    bytes += taken;
    size -= taken;
    if (frame_bytes_ == kFrameHeaderBytes) too_large_ = !BeginFrame();
  }
  return !too_large_;
}

bool HeaderBlocks::BeginFrame() {
  frame_bytes_ = 0;
  skip_ = uint64_t{frame_[0]} << 16 | uint64_t{frame_[1]} << 8 | frame_[2];
  uint8_t type = frame_[3], flags = frame_[4];
  if (type == kRstStream) ++num_resets_;
  // An interrupted block still counts. gRPC ends such connections, but this code does not rely on
  // that.
  if (type != kHeaders && type != kContinuation) return true;
  block_bytes_ += skip_;
  ++block_frames_;
  if (block_bytes_ > kMaxBytes || block_frames_ > kMaxFrames) return false;
  if (flags & kEndHeaders) {
    block_bytes_ = 0;
    block_frames_ = 0;
  }
  return true;
}

}  // namespace stride::api
