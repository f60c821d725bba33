#pragma once

#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride::broker {

// Interrupts a thread's poll (eventfd). Thread-safe.
class Wakeup {
 public:
  Wakeup() = default;  // no descriptor: only assignment is valid
  static absl::StatusOr<Wakeup> Create();
  void Signal();
  void Clear();
  int descriptor() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace stride::broker
