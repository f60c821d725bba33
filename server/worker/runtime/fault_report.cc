#include "server/worker/runtime/fault_report.h"

#include <sys/socket.h>
#include <unistd.h>

#include "server/worker/runtime/protected_value.h"

namespace stride::worker {
namespace {

constinit ProtectedValue<int> fault_socket(-1);

constexpr size_t kMaxText = 1000;
// Protobuf tags: field number << 3 | wire type (0 varint, 2 bytes). The numbers are those of
// worker.proto.
constexpr uint8_t kEventFatal = 7 << 3 | 2;
constexpr uint8_t kFatalSequence = 1 << 3 | 0;
constexpr uint8_t kFatalStatus = 2 << 3 | 2;
constexpr uint8_t kStatusCode = 1 << 3 | 0;
constexpr uint8_t kStatusMessage = 2 << 3 | 2;

class MessageWriter {
 public:
  void Byte(uint8_t byte) { bytes_[size_++] = byte; }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value) | 0x80);
    Byte(static_cast<uint8_t>(value));
  }
  void Text(const char* text, size_t size) {
    for (size_t i = 0; i < size; ++i) Byte(static_cast<signed char>(text[i]) < 0 ? '?' : text[i]);
  }
  void Append(const MessageWriter& other) {
    for (size_t i = 0; i < other.size_; ++i) Byte(other.bytes_[i]);
  }
  const uint8_t* data() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  uint8_t bytes_[kMaxText + 64];
  size_t size_ = 0;
};

}  // namespace

void SetFaultSocket(int fd) { fault_socket.Set(fd); }

bool HasFaultSocket() { return fault_socket.Get() >= 0; }

void ReportFaultAndExit(uint64_t sequence, int code, const char* text, size_t size) {
  if (size > kMaxText) size = kMaxText;
  MessageWriter status, fatal, event;
  status.Byte(kStatusCode);
  status.Varint(static_cast<uint64_t>(code));
  status.Byte(kStatusMessage);
  status.Varint(size);
  status.Text(text, size);
  fatal.Byte(kFatalSequence);
  fatal.Varint(sequence);
  fatal.Byte(kFatalStatus);
  fatal.Varint(status.size());
  fatal.Append(status);
  event.Byte(kEventFatal);
  event.Varint(fatal.size());
  event.Append(fatal);
  (void)!send(fault_socket.Get(), event.data(), event.size(), MSG_NOSIGNAL);
  _exit(1);
}

SignalSafeText& SignalSafeText::operator<<(const char* text) {
  while (*text != 0 && size_ < sizeof(buffer_)) buffer_[size_++] = *text++;
  return *this;
}

SignalSafeText& SignalSafeText::operator<<(uint64_t number) {
  char digits[21];
  size_t at = sizeof(digits) - 1;
  digits[at] = 0;
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return *this << digits + at;
}

}  // namespace stride::worker
