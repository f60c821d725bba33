#pragma once

#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride {

// The signals that a daemon handles, as a descriptor. They are blocked in this thread and in
// threads that it starts later, so create it before any other thread.
class Signals {
 public:
  static absl::StatusOr<Signals> Block();
  int fd() const { return fd_.get(); }
  // The number of a pending signal; 0: none.
  int Next();

 private:
  explicit Signals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace stride
