#pragma once

#include <cstddef>
#include <cstdint>

namespace stride::worker {

// The last report of a worker that caught a fault signal. Everything here is async-signal-safe: no
// allocation, no lock, no protobuf library; the message (wire.Event.fatal) is written byte by byte.

// The socket for reports; set once, before the first command.
void SetFaultSocket(int fd);
// False in a process without a daemon, such as a device's test: a fault then ends it by its signal.
bool HasFaultSocket();

// Reports to the daemon and ends the process with code 1. `code` is an absl::StatusCode; `text` is
// cut at 1,000 bytes, and bytes that are not ASCII become '?'.
[[noreturn]] void ReportFaultAndExit(uint64_t sequence, int code, const char* text, size_t size);

// Text in a fixed buffer; longer text is cut.
class SignalSafeText {
 public:
  SignalSafeText& operator<<(const char* text);
  SignalSafeText& operator<<(uint64_t number);
  const char* data() const { return buffer_; }
  size_t size() const { return size_; }

 private:
  char buffer_[1000];
  size_t size_ = 0;
};

}  // namespace stride::worker
