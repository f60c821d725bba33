// The memory of the daemon's arrays, mapped into a process on the same machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stride/array.h"
#include "stride/call_options.h"
#include "stride/result.h"

namespace stride {

namespace internal {
class Loan;
}

struct MapOptions : CallOptions {
  // The array is removed from the daemon: its name is released, and this process may read and write
  // its memory, which is charged to the tenant until the MappedArray is destroyed. Requires an
  // array that shares its memory with no other.
  bool hand_over = false;
};

// An array's memory, mapped without a copy. Without `hand_over` it is for reading, and the daemon
// cannot write the array while this object exists: such operations fail with FAILED_PRECONDITION.
// It outlives the array, the session and the Client. Movable; any thread may read the memory.
class MappedArray {
 public:
  // Waits until the array is ready. FAILED_PRECONDITION when the daemon is not reached by its Unix
  // socket, for arrays without elements or spread over devices, and with `hand_over` for arrays
  // whose memory has other users. RESOURCE_EXHAUSTED when too much is mapped.
  static Result<MappedArray> Map(const Array& array, const MapOptions& options = {});

  explicit MappedArray(std::shared_ptr<internal::Loan> loan);
  MappedArray(MappedArray&&) noexcept;
  MappedArray& operator=(MappedArray&&) noexcept;
  // Unmaps the memory. Returns once the daemon has ended the loan, so that a later write is not
  // refused; waits at most some seconds if the daemon does not answer.
  ~MappedArray();

  // The first element, in this process's memory; null on a GPU. Without `hand_over`, writes stay
  // private to this process.
  std::byte* data() const;
  // `count` elements of a contiguous array.
  template <typename T>
  std::span<T> as(size_t count) const {
    return {reinterpret_cast<T*>(data()), count};
  }
  // Bytes between neighbouring elements along each axis.
  const std::vector<int64_t>& strides() const;
  // `devices/{device}`; with the UUID of a GPU.
  const std::string& device() const;
  const std::string& device_kind() const;

  // On a GPU: the handle for cuMemImportFromShareableHandle (POSIX file descriptor, owned by this
  // object), the size to map, and the offset of the first element in bytes. Unmap the memory before
  // this object's destruction.
  int descriptor() const;
  int64_t memory_bytes() const;
  int64_t offset() const;

 private:
  std::shared_ptr<internal::Loan> loan_;
};

}  // namespace stride
