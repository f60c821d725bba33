#include "server/broker/outbox.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/base/system_error.h"

namespace stride::broker {

absl::Status Outbox::Add(absl::Span<const std::string_view> pieces,
                         absl::Span<const int> descriptors) {
  size_t size = 0;
  for (std::string_view piece : pieces) size += piece.size();
  if (size > wire::kMaxPacketBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message to a worker is too large: ", size, " bytes"));
  }
  Packet packet;
  for (int descriptor : descriptors) {
    UniqueFd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return SystemError(errno, "duplicating a descriptor");
    packet.descriptors.push_back(std::move(copy));
  }
  absl::MutexLock lock(&mutex_);
  packet.bytes = std::exchange(spare_, {});
  packet.bytes.clear();
  packet.bytes.reserve(size);
  for (std::string_view piece : pieces) packet.bytes.append(piece);
  packets_.push_back(std::move(packet));
  return absl::OkStatus();
}

absl::Status Outbox::Send() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(sending_, true)) return absl::OkStatus();
  }
  Packet packet;
  while (Next(&packet)) {
    absl::InlinedVector<int, wire::kMaxPacketDescriptors> descriptors;
    for (const UniqueFd& descriptor : packet.descriptors) descriptors.push_back(descriptor.get());
    const absl::Status sent = channel_.TrySend(packet.bytes, descriptors);
    if (sent.ok()) continue;
    const bool full = absl::IsDeadlineExceeded(sent);
    Stop(std::move(packet), full);
    return full ? absl::OkStatus() : sent;
  }
  return absl::OkStatus();
}

bool Outbox::Next(Packet* packet) {
  absl::MutexLock lock(&mutex_);
  if (!packet->bytes.empty()) spare_ = std::move(packet->bytes);
  if (packets_.empty()) {
    sending_ = false;
    full_.store(false, std::memory_order_release);
    return false;
  }
  *packet = std::move(packets_.front());
  packets_.pop_front();
  return true;
}

void Outbox::Stop(Packet packet, bool full) {
  absl::MutexLock lock(&mutex_);
  sending_ = false;
  full_.store(full, std::memory_order_release);
  if (full) {
    packets_.push_front(std::move(packet));
  } else {
    packets_.clear();
  }
}

}  // namespace stride::broker
