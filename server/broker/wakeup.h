#pragma once

#include "server/base/unique_fd.h"

namespace stride::broker {

// Interrupts a thread's poll (eventfd). Thread-safe.
class Wakeup {
 public:
  Wakeup();
  void Signal();
  void Clear();
  int descriptor() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace stride::broker
