#pragma once

#include <cstdint>

namespace stride::testing {

// Allocations of this thread from the C++ library's heap while it counts. Only in programs that are
// built with count_allocations.cc; elsewhere nothing is counted.
struct Allocations {
  static inline thread_local bool counting = false;
  static inline thread_local int64_t count = 0;
};

// Counts during its lifetime or, within that, does not.
class CountAllocations {
 public:
  explicit CountAllocations(bool count) : before_(Allocations::counting) {
    Allocations::counting = count;
  }
  ~CountAllocations() { Allocations::counting = before_; }
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;

 private:
  const bool before_;
};

}  // namespace stride::testing
