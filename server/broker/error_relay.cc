#include "server/broker/error_relay.h"

#include <unistd.h>

#include <cerrno>

namespace stride::broker {
namespace {

constexpr size_t kMostBytes = 16 << 10;
constexpr size_t kLongestLine = 400;

}  // namespace

void ErrorRelay::Read() {
  if (!input_.valid()) return;
  char bytes[4096];
  ssize_t size = read(input_.get(), bytes, sizeof(bytes));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  for (ssize_t i = 0; i < size; ++i) {
    if (bytes[i] == '\n') {
      Flush();
    } else if (line_.size() < kLongestLine) {
      line_ += bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '?';
    }
  }
  taken_ += size > 0 ? static_cast<size_t>(size) : 0;
  if (size > 0 && taken_ < kMostBytes) return;
  Flush();
  // The worker gets EPIPE from now on, and continues without output.
  input_.Reset();
}

void ErrorRelay::Flush() {
  if (assertion_.empty() && line_.find("] Assertion `") != std::string::npos) assertion_ = line_;
  if (!line_.empty() && log_) log_(line_);
  line_.clear();
}

}  // namespace stride::broker
