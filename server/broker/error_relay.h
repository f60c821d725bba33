#pragma once

#include <functional>
#include <string>

#include "server/base/unique_fd.h"

namespace stride::broker {

// Relays a worker's standard error to the daemon's log, by lines and only as printable ASCII. A
// kernel of the CPU device can write there too, so the total per worker is a few kilobytes. Not
// thread-safe.
class ErrorRelay {
 public:
  using Log = std::function<void(const std::string&)>;

  // `input` must be non-blocking.
  ErrorRelay(UniqueFd input, Log log) : input_(std::move(input)), log_(std::move(log)) {}

  // Descriptor for poll; -1 once no more is read.
  int descriptor() const { return input_.get(); }
  // Reads one chunk. Call when the descriptor is readable, and at the end.
  void Read();
  // Logs the last line, which may lack its newline.
  void Flush();
  // First line of a failed assert in a kernel, in the CUDA driver's format (file, line, kernel,
  // block, thread, condition); empty: none.
  const std::string& assertion() const { return assertion_; }

 private:
  UniqueFd input_;
  const Log log_;
  std::string line_, assertion_;
  size_t taken_ = 0;
};

}  // namespace stride::broker
