#pragma once

#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride {

// The signals that a daemon hears, as a descriptor. They are blocked in this thread and all it
// makes later, so that it must be made before any other.
class Signals {
 public:
  static absl::StatusOr<Signals> Block();
  int fd() const { return fd_.get(); }
  // The number of a signal that came; 0 when none is there.
  int Next();

 private:
  explicit Signals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace stride
