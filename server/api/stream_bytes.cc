#include "server/api/stream_bytes.h"

#include <algorithm>

namespace stride::api {
namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kRstStream = 3;
constexpr uint8_t kEndStream = 1;
// A larger message is refused, and has no more time than the largest valid one.
constexpr int64_t kLargest = 4 << 20;

}  // namespace

template <typename Begin, typename Data>
void FrameWalk::Take(const uint8_t* bytes, size_t size, Begin begin, Data data) {
  while (size > 0) {
    if (skip_ > 0) {
      const size_t taken = std::min<uint64_t>(skip_, size);
      if (frame_.size > 0 && frame_.type == kData) data(frame_, bytes, taken);
      skip_ -= taken;
      bytes += taken;
      size -= taken;
      continue;
    }
    const size_t taken = std::min(kHeaderBytes - header_bytes_, size);
    std::copy_n(bytes, taken, header_ + header_bytes_);
    header_bytes_ += taken;
    bytes += taken;
    size -= taken;
    if (header_bytes_ < kHeaderBytes) return;
    header_bytes_ = 0;
    frame_.size = uint32_t{header_[0]} << 16 | uint32_t{header_[1]} << 8 | header_[2];
    frame_.type = header_[3];
    frame_.flags = header_[4];
    frame_.stream = (uint32_t{header_[5]} << 24 | uint32_t{header_[6]} << 16 |
                     uint32_t{header_[7]} << 8 | header_[8]) &
                    0x7fffffff;
    skip_ = frame_.size;
    begin(frame_);
  }
}

bool StreamBytes::Received(const uint8_t* bytes, size_t size, Time now) {
  received_.Take(
      bytes, size,
      [&](const FrameWalk::Frame& frame) {
        if (frame.type == kRstStream) End(frame.stream);
        // Later HEADERS of a stream are its trailers.
        if (frame.type != kHeaders || frame.stream <= last_stream_) return;
        last_stream_ = frame.stream;
        Stream& stream = streams_[frame.stream];
        stream.begun = now;
        Hold(stream, kStreamBytes);
      },
      [&](const FrameWalk::Frame& frame, const uint8_t* data, size_t count) {
        const auto it = streams_.find(frame.stream);
        if (it != streams_.end()) TakeData(it->second, data, count, now);
      });
  return streams_.size() <= kMaxStreams;
}

void StreamBytes::Sent(const uint8_t* bytes, size_t size) {
  sent_.Take(
      bytes, size,
      [&](const FrameWalk::Frame& frame) {
        if (frame.type == kRstStream) return End(frame.stream);
        if (frame.type != kHeaders && frame.type != kData) return;
        if ((frame.flags & kEndStream) != 0) return End(frame.stream);
        if (frame.type != kHeaders) return;
        const auto it = streams_.find(frame.stream);
        if (it == streams_.end()) return;
        it->second.taken = true;
        Hold(it->second, it->second.partial);
      },
      [](const FrameWalk::Frame&, const uint8_t*, size_t) {});
}

void StreamBytes::TakeData(Stream& stream, const uint8_t* bytes, size_t size, Time now) {
  const auto whole = static_cast<int64_t>(size);
  while (size > 0) {
    if (stream.partial == 0) {
      stream.begun = now;
      stream.length = 0;
    }
    size_t taken = 1;
    if (stream.prefix_bytes < kPrefixBytes) {
      // A flag, and four bytes of length.
      stream.length = stream.length << 8 | *bytes;
      if (++stream.prefix_bytes == 1) stream.length = 0;
      if (stream.prefix_bytes == kPrefixBytes) stream.left = stream.length;
    } else {
      taken = static_cast<size_t>(std::min<int64_t>(stream.left, static_cast<int64_t>(size)));
      stream.left -= static_cast<int64_t>(taken);
    }
    stream.partial += static_cast<int64_t>(taken);
    bytes += taken;
    size -= taken;
    if (stream.prefix_bytes == kPrefixBytes && stream.left == 0) {
      stream.has_message = true;
      stream.partial = 0;
      stream.prefix_bytes = 0;
    }
  }
  Hold(stream, stream.taken ? stream.partial : stream.held + whole);
}

void StreamBytes::Hold(Stream& stream, int64_t bytes) {
  held_ += bytes - stream.held;
  stream.held = bytes;
}

void StreamBytes::End(uint32_t stream) {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  held_ -= it->second.held;
  streams_.erase(it);
}

bool StreamBytes::Late(Time now, Duration time) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    const Stream& stream = entry.second;
    // Later messages may wait for the daemon, which reads no faster than a tenant's rate.
    if (stream.has_message || stream.taken) return false;
    const int64_t size = std::min<int64_t>(stream.length, kLargest);
    return now - stream.begun > time + std::chrono::seconds(size / kBytesPerSecond);
  });
}

}  // namespace stride::api
