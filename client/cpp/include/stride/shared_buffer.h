// Memory shared with the daemon, for arrays of one's own: no byte of them is copied on the way.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace stride {

namespace internal {
class UserRegion;
}

// Made by Client::AllocateShared, zero at first, page aligned. What Put reads from it, and Fetch
// puts into it, goes without a copy on this side; on a GPU by DMA. Any part of it may be used; it
// must not change while a call uses it, as with all memory.
//
// Outlives its Client: the bytes stay, and are ordinary memory from then on. They do not outlive
// the daemon's session without it, as when this process was stopped for longer than the session's
// time to live: they are zero then. Movable; not thread-safe.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(std::shared_ptr<internal::UserRegion> region);
  SharedBuffer(SharedBuffer&&) noexcept = default;
  SharedBuffer& operator=(SharedBuffer&&) noexcept;
  ~SharedBuffer();

  std::byte* data() const;
  // As asked for, rounded up to whole pages.
  size_t size() const;
  // The first `count` elements.
  template <typename T>
  std::span<T> as(size_t count) const {
    return {reinterpret_cast<T*>(data()), count};
  }

 private:
  std::shared_ptr<internal::UserRegion> region_;
};

}  // namespace stride
