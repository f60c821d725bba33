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

// As it lies in memory and travels.
struct Header {
  uint32_t size = 0;
  uint32_t kind = 0;
  uint64_t timeout_ns = 0;
};
static_assert(sizeof(Header) == FrameSocket::kHeaderBytes);
static_assert(std::endian::native == std::endian::little);

// Slices below it are sent together with the header.
constexpr size_t kSmallBytes = 4096;

absl::Duration TimeoutOf(uint64_t nanoseconds) {
  constexpr uint64_t kLongest = std::numeric_limits<int64_t>::max();
  return absl::Nanoseconds(static_cast<int64_t>(std::min(nanoseconds, kLongest)));
}

}  // namespace

FrameSocket::FrameSocket(UniqueFd fd, absl::Duration idle)
    : fd_(std::move(fd)), buffer_(kBufferBytes) {
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
  }
  return size;
}

bool FrameSocket::Fill(size_t size) {
  while (end_ - begin_ < size) {
    if (begin_ > 0 && begin_ + size > buffer_.size()) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    if (end_ == buffer_.size()) buffer_.resize(std::min(size, 2 * buffer_.size()));
    const int64_t received = Receive();
    if (received <= 0) return false;
    may_end_ = false;
    end_ += static_cast<size_t>(received);
  }
  return true;
}

absl::StatusOr<Frame> FrameSocket::Read(bool first) {
  if (begin_ == end_) begin_ = end_ = 0;
  may_end_ = first && begin_ == end_;
  if (!Fill(kHeaderBytes)) return absl::OutOfRangeError("the connection has ended");
  Header header;
  std::memcpy(&header, buffer_.data() + begin_, sizeof(header));
  const size_t size = header.size;
  if (size > kMaxMessageBytes) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "size",
        absl::StrCat("a message has at most ", kMaxMessageBytes, " bytes, not ", size),
        {{"limit", std::to_string(kMaxMessageBytes)}, {"value", std::to_string(size)}});
  }
  Frame frame;
  frame.kind = static_cast<v1::LocalFrame>(header.kind);
  frame.timeout = TimeoutOf(header.timeout_ns);
  if (!Fill(kHeaderBytes + size)) return absl::OutOfRangeError("the connection has ended");
  frame.message = {buffer_.data() + begin_ + kHeaderBytes, size};
  begin_ += kHeaderBytes + size;
  return frame;
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
}

bool FrameSocket::hung_up() const {
  pollfd polled{fd_.get(), 0, 0};
  return poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

void FrameSocket::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }
void FrameSocket::StopReading() { shutdown(fd_.get(), SHUT_RD); }

}  // namespace stride::api
