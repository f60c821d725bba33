#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace stride::worker {

// A value that signal handlers need in a process whose other code may write anywhere. It is alone
// on a page that is writable only during Set. It has static storage. One thread calls Set, before
// the other code runs.
template <typename T>
class ProtectedValue {
 public:
  constexpr explicit ProtectedValue(T value) : value_(value) {}

  void Set(T value) {
    mprotect(this, kPage, PROT_READ | PROT_WRITE);
    value_ = value;
    mprotect(this, kPage, PROT_READ);
  }
  T Get() const { return value_; }

 private:
  static constexpr size_t kPage = 4096;
  static_assert(sizeof(T) < kPage);

  alignas(kPage) T value_;
  char rest_[kPage - sizeof(T)] = {};
};

}  // namespace stride::worker
