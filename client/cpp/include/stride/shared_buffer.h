// Memory shared with the daemon, for the client's arrays: their bytes are transferred without a
// copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace stride {

namespace internal {
class UserRegion;
}

// Created by Client::AllocateShared, zero at first, page aligned. Put from it and Fetch to it need
// no copy on this side; on a GPU they use DMA. Any part of it may be used. It must not change while
// a call uses it, like all memory.
//
// Outlives its Client: the bytes stay, and are ordinary memory from then on. If the daemon ends the
// session without the client, for example because this process was stopped for longer than the
// session's time to live, the bytes become zero. Movable; not thread-safe.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(std::shared_ptr<internal::UserRegion> region);
  SharedBuffer(SharedBuffer&&) noexcept = default;
  SharedBuffer& operator=(SharedBuffer&&) noexcept;
  ~SharedBuffer();

  std::byte* data() const;
  // Bytes: the requested size, rounded up to whole pages.
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
