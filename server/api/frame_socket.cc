#include "server/api/frame_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/spin.h"

namespace stride::api {
namespace {

// The layout in memory and on the wire.
struct Header {
  uint32_t size = 0;
  uint32_t kind = 0;
  uint64_t timeout_ns = 0;
};
static_assert(sizeof(Header) == FrameSocket::kHeaderBytes);
static_assert(std::endian::native == std::endian::little);

// The least rate at which a client must send a large message.
constexpr size_t kBytesPerSecond = 64 << 10;
// Smaller slices are sent together with the header.
constexpr size_t kSmallBytes = 4096;

absl::Duration TimeoutOf(uint64_t nanoseconds) {
  constexpr uint64_t kLongest = std::numeric_limits<int64_t>::max();
  return absl::Nanoseconds(static_cast<int64_t>(std::min(nanoseconds, kLongest)));
}

}  // namespace

FrameSocket::FrameSocket(UniqueFd fd, absl::Duration idle, absl::Duration frame_time,
                         ByteBudget::Charge room)
    : fd_(std::move(fd)),
      buffer_(kBufferBytes),
      frame_time_(absl::ToChronoNanoseconds(frame_time)),
      room_(std::move(room)) {
  const timeval timeout = absl::ToTimeval(idle);
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

int64_t FrameSocket::Receive() {
  auto receive = [this](int flags) {
    ssize_t size;
    do {
      size = recv(fd_.get(), buffer_.data() + end_, buffer_.size() - end_, flags);
    } while (size < 0 && errno == EINTR);
    return size;
  };
  ssize_t size = -1;
  const bool come = SpinUntil(
      [&] {
        size = receive(MSG_DONTWAIT);
        return size >= 0 || errno != EAGAIN;
      },
      kWatch);
  while (!come && (size = receive(0)) < 0 && errno == EAGAIN) {
    if (may_end_) StopReading();
    if (Late()) return -1;
  }
  return size;
}

bool FrameSocket::Late() const {
  return due_.has_value() && std::chrono::steady_clock::now() > *due_;
}

absl::Status FrameSocket::Fill(size_t size) {
  while (end_ - begin_ < size) {
    if (begin_ > 0 && begin_ + size > buffer_.size()) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    if (end_ == buffer_.size()) {
      const size_t larger = std::min(size, 2 * buffer_.size());
      absl::Status status = room_.Set(static_cast<int64_t>(larger));
      if (!status.ok()) return status;
      buffer_.resize(larger);
    }
    const int64_t received = Receive();
    if (received <= 0 || Late()) return absl::OutOfRangeError("the connection has ended");
    may_end_ = false;
    end_ += static_cast<size_t>(received);
    // The rest of the frame is still to come.
    if (!due_.has_value()) due_ = std::chrono::steady_clock::now() + frame_time_;
  }
  return absl::OkStatus();
}

bool FrameSocket::Discard(size_t size) {
  for (;;) {
    const size_t taken = std::min(size, end_ - begin_);
    begin_ += taken;
    size -= taken;
    if (size == 0) return true;
    begin_ = end_ = 0;
    const int64_t received = Receive();
    if (received <= 0 || Late()) return false;
    end_ = static_cast<size_t>(received);
  }
}

absl::Status FrameSocket::ReadHeader(size_t* size, absl::Duration* timeout) {
  due_.reset();
  if (begin_ != end_) due_ = std::chrono::steady_clock::now() + frame_time_;
  if (absl::Status status = Fill(kHeaderBytes); !status.ok()) return status;
  Header header;
  std::memcpy(&header, buffer_.data() + begin_, sizeof(header));
  *size = header.size;
  *timeout = TimeoutOf(header.timeout_ns);
  last_kind_ = static_cast<v1::LocalFrame>(header.kind);
  if (*size > kMaxMessageBytes) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "size",
        absl::StrCat("a message has at most ", kMaxMessageBytes, " bytes, not ", *size),
        {{"limit", std::to_string(kMaxMessageBytes)}, {"value", std::to_string(*size)}});
  }
  if (due_.has_value()) *due_ += std::chrono::seconds(*size / kBytesPerSecond);
  return absl::OkStatus();
}

absl::StatusOr<Frame> FrameSocket::Read(bool first) {
  if (begin_ == end_) begin_ = end_ = 0;
  may_end_ = first && begin_ == end_;
  Frame frame;
  size_t size = 0;
  if (absl::Status status = ReadHeader(&size, &frame.timeout); !status.ok()) return status;
  frame.kind = last_kind_;
  if (absl::Status status = Fill(kHeaderBytes + size); !status.ok()) {
    if (!absl::IsResourceExhausted(status) || Discard(kHeaderBytes + size)) return status;
    return absl::OutOfRangeError("the connection has ended");
  }
  frame.message = {buffer_.data() + begin_ + kHeaderBytes, size};
  begin_ += kHeaderBytes + size;
  return frame;
}

bool FrameSocket::Drop(v1::LocalFrame* kind) {
  size_t size = 0;
  absl::Duration timeout;
  may_end_ = false;
  if (!ReadHeader(&size, &timeout).ok()) return false;
  *kind = last_kind_;
  return Discard(kHeaderBytes + size);
}

bool FrameSocket::Write(v1::LocalFrame kind, const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  out_.resize(kHeaderBytes + size);
  const Header header{static_cast<uint32_t>(size), static_cast<uint32_t>(kind), 0};
  std::memcpy(out_.data(), &header, sizeof(header));
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out_.data() + kHeaderBytes));
  const bool sent = Send(out_.data(), out_.size());
  if (out_.capacity() > kBufferBytes) out_ = {};
  return sent;
}

bool FrameSocket::Write(v1::LocalFrame kind, const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return false;
  const Header header{static_cast<uint32_t>(message.Length()), static_cast<uint32_t>(kind), 0};
  out_.assign(reinterpret_cast<const char*>(&header), sizeof(header));
  size_t next = 0;
  for (; next < slices.size() && slices[next].size() < kSmallBytes; ++next)
    out_.append(reinterpret_cast<const char*>(slices[next].begin()), slices[next].size());
  bool sent = Send(out_.data(), out_.size());
  for (; sent && next < slices.size(); ++next)
    sent = Send(slices[next].begin(), slices[next].size());
  return sent;
}

bool FrameSocket::Send(const void* data, size_t size) {
  for (auto* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t sent = send(fd_.get(), at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

void FrameSocket::Shrink() {
  if (buffer_.size() == kBufferBytes || end_ - begin_ > kBufferBytes) return;
  std::vector<char> smaller(kBufferBytes);
  std::memcpy(smaller.data(), buffer_.data() + begin_, end_ - begin_);
  buffer_.swap(smaller);
  end_ -= std::exchange(begin_, 0);
  room_.Set(0).IgnoreError();
}

bool FrameSocket::hung_up() const {
  pollfd polled{fd_.get(), 0, 0};
  return poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

void FrameSocket::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }
void FrameSocket::StopReading() { shutdown(fd_.get(), SHUT_RD); }

}  // namespace stride::api
