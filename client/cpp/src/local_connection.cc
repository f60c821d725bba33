#include "client/cpp/src/local_connection.h"

#include <grpcpp/support/slice.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "client/cpp/src/call.h"
#include "client/cpp/src/status.h"
#include "client/cpp/src/ticket.h"
#include "client/cpp/src/watch.h"
#include "stride/v1/local_service.grpc.pb.h"

namespace stride::internal {
namespace {

using Outcome = LocalConnection::Outcome;

// The contract's layout.
struct Header {
  uint32_t size;
  uint32_t kind;
  uint64_t timeout_ns;
};
static_assert(sizeof(Header) == 16);
static_assert(std::endian::native == std::endian::little, "headers travel as they lie in memory");

constexpr size_t kBufferBytes = 64 << 10;
// Memory for larger messages is released after each.
constexpr size_t kKeptBytes = 1 << 20;
// Slices of a message up to this size are copied after the header; larger ones are sent in place.
constexpr size_t kSmallBytes = 4096;

// Grows the buffer. Keeps existing memory as it is: clearing bytes that are overwritten next costs
// time.
void Reserve(std::vector<char>& buffer, size_t size) {
  if (buffer.size() > kKeptBytes) buffer = {};
  if (buffer.size() < size) buffer.resize(size);
}

bool MayTryAgain() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

Result<std::unique_ptr<LocalConnection>> LocalConnection::Open(Channels& channels,
                                                               const CallOptions& options) {
  if (!channels.by_unix_socket())
    return LocalError(Code::kUnimplemented, "Local connections need the daemon's Unix socket");
  Call call(options, {});
  v1::ConnectResponse ticket;
  auto stub = v1::LocalService::NewStub(channels.control());
  if (auto status = stub->Connect(call.context(), {}, &ticket); !status.ok())
    return ToError(status);
  auto socket = FetchDescriptor(channels, ticket.socket_path(), ticket.ticket());
  // The daemon answers, but this client cannot reach its other socket.
  if (!socket) return LocalError(Code::kUnimplemented, socket.error().message);
  return std::make_unique<LocalConnection>(*std::move(socket));
}

LocalConnection::LocalConnection(Descriptor socket)
    : socket_(std::move(socket)), in_(kBufferBytes) {}

Outcome LocalConnection::Write(v1::LocalFrame kind, const google::protobuf::MessageLite& message,
                               std::chrono::nanoseconds timeout, LocalDeadline deadline) {
  const size_t size = message.ByteSizeLong();
  const Header header{static_cast<uint32_t>(size), static_cast<uint32_t>(kind),
                      static_cast<uint64_t>(timeout.count())};
  const size_t whole = sizeof(header) + size;
  Reserve(out_, whole);
  std::memcpy(out_.data(), &header, sizeof(header));
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out_.data()) + sizeof(header));
  return Send(out_.data(), whole, deadline);
}

Outcome LocalConnection::Write(v1::LocalFrame kind, const grpc::ByteBuffer& message,
                               std::chrono::nanoseconds timeout, LocalDeadline deadline) {
  std::vector<grpc::Slice> slices;
  if (message.Valid() && !message.Dump(&slices).ok()) return Outcome::kEnded;
  const Header header{static_cast<uint32_t>(message.Length()), static_cast<uint32_t>(kind),
                      static_cast<uint64_t>(timeout.count())};
  Reserve(out_, sizeof(header) + slices.size() * kSmallBytes);
  std::memcpy(out_.data(), &header, sizeof(header));
  size_t joined = sizeof(header), next = 0;
  for (; next < slices.size() && slices[next].size() <= kSmallBytes; ++next) {
    std::memcpy(out_.data() + joined, slices[next].begin(), slices[next].size());
    joined += slices[next].size();
  }
  Outcome outcome = Send(out_.data(), joined, deadline);
  for (; next < slices.size() && outcome == Outcome::kDone; ++next)
    outcome = Send(slices[next].begin(), slices[next].size(), deadline);
  return outcome;
}

Outcome LocalConnection::Send(const void* data, size_t size, LocalDeadline deadline) {
  const auto* from = static_cast<const char*>(data);
  for (size_t sent = 0; sent < size;) {
    const ssize_t part = send(socket_.get(), from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (part >= 0) {
      sent += static_cast<size_t>(part);
    } else if (!MayTryAgain()) {
      return Outcome::kEnded;
    } else if (auto outcome = Await(POLLOUT, deadline); outcome != Outcome::kDone) {
      return outcome;
    }
  }
  return Outcome::kDone;
}

Outcome LocalConnection::Read(LocalMessage* message, bool watch, LocalDeadline deadline) {
  Header header;
  if (auto outcome = Buffer(sizeof(header), watch, deadline); outcome != Outcome::kDone)
    return outcome;
  std::memcpy(&header, in_.data() + begin_, sizeof(header));
  const size_t size = header.size;
  if (size > kMaxMessageBytes) return Outcome::kEnded;
  message->kind = static_cast<v1::LocalFrame>(header.kind);
  if (sizeof(header) + size <= in_.size()) {
    if (auto outcome = Buffer(sizeof(header) + size, watch, deadline); outcome != Outcome::kDone)
      return outcome;
    message->bytes = {in_.data() + begin_ + sizeof(header), size};
    begin_ += sizeof(header) + size;
    return Outcome::kDone;
  }
  // All bytes in the buffer after the header belong to this message.
  Reserve(large_, size);
  size_t filled = end_ - begin_ - sizeof(header);
  std::memcpy(large_.data(), in_.data() + begin_ + sizeof(header), filled);
  begin_ = end_ = 0;
  while (filled < size) {
    size_t received = 0;
    const auto outcome = Receive(large_.data() + filled, size - filled, watch, deadline, &received);
    if (outcome != Outcome::kDone) return outcome;
    filled += received;
  }
  message->bytes = {large_.data(), size};
  return Outcome::kDone;
}

Outcome LocalConnection::Buffer(size_t size, bool watch, LocalDeadline deadline) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ + size > in_.size()) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < size) {
    size_t received = 0;
    const auto outcome = Receive(in_.data() + end_, in_.size() - end_, watch, deadline, &received);
    if (outcome != Outcome::kDone) return outcome;
    end_ += received;
  }
  return Outcome::kDone;
}

Outcome LocalConnection::Receive(char* to, size_t size, bool watch, LocalDeadline deadline,
                                 size_t* received) {
  ssize_t part = -1;
  const auto receive = [&](int flags) {
    part = recv(socket_.get(), to, size, flags);
    return part >= 0 || !MayTryAgain();
  };
  bool answered = watch && Watch([&] { return receive(MSG_DONTWAIT); });
  while (!answered) {
    if (!deadline) {
      answered = receive(0);
    } else if (auto outcome = Await(POLLIN, deadline); outcome != Outcome::kDone) {
      return outcome;
    } else {
      answered = receive(MSG_DONTWAIT);
    }
  }
  if (part <= 0) return Outcome::kEnded;
  *received = static_cast<size_t>(part);
  return Outcome::kDone;
}

Outcome LocalConnection::Await(short events, LocalDeadline deadline) {
  pollfd waiting{.fd = socket_.get(), .events = events, .revents = 0};
  for (;;) {
    timespec left{};
    if (deadline) {
      const auto rest = std::max(*deadline - std::chrono::steady_clock::now(),
                                 std::chrono::steady_clock::duration::zero());
      const auto whole = std::chrono::duration_cast<std::chrono::seconds>(rest);
      left.tv_sec = whole.count();
      left.tv_nsec = std::chrono::nanoseconds(rest - whole).count();
    }
    const int ready = ppoll(&waiting, 1, deadline ? &left : nullptr, nullptr);
    if (ready > 0) return Outcome::kDone;
    if (ready == 0) return Outcome::kTimedOut;
    if (errno != EINTR) return Outcome::kEnded;
  }
}

bool LocalConnection::Quiet() {
  char byte;
  return begin_ == end_ && recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         errno == EAGAIN;
}

void LocalConnection::Cancel() { shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace stride::internal
