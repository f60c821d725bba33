#pragma once

#include <functional>
#include <string>

#include "server/base/unique_fd.h"

namespace stride::broker {

// What a worker writes on its standard error, for the daemon's log: by lines, only printable ASCII,
// and no more than a few kilobytes of a worker's whole life, since a kernel of the CPU device can
// write there too. Not thread-safe.
class ErrorRelay {
 public:
  using Log = std::function<void(const std::string&)>;

  // `input` does not block.
  ErrorRelay(UniqueFd input, Log log) : input_(std::move(input)), log_(std::move(log)) {}

  // For poll; -1 when nothing more is taken.
  int descriptor() const { return input_.get(); }
  // To be called when there is something to read, and at the end: one bite.
  void Read();
  // The last line may lack its end.
  void Flush();
  // The first line of a failed assert in a kernel, as the CUDA driver writes it (file, line,
  // kernel, block, thread, condition); empty: none came.
  const std::string& assertion() const { return assertion_; }

 private:
  UniqueFd input_;
  const Log log_;
  std::string line_, assertion_;
  size_t taken_ = 0;
};

}  // namespace stride::broker
