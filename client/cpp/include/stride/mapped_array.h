// The memory of the service's own arrays, in a process on the daemon's machine.
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
  // The array leaves the service: its name is gone, and its memory is this process's to read and
  // write, charged to the tenant until the MappedArray goes. For an array that shares its memory
  // with none.
  bool hand_over = false;
};

// An array's memory, mapped without a copy. Unless it was handed over it is for reading, and the
// service cannot write the array while this lives: such work ends with FAILED_PRECONDITION. It
// outlives the array, the session and the Client. Movable; any thread may read the memory.
class MappedArray {
 public:
  // Waits until the array has been computed. FAILED_PRECONDITION where the daemon is not reached by
  // its Unix socket, and for arrays without elements, spread over devices or, to be handed over,
  // with other users of their memory; RESOURCE_EXHAUSTED where too much is mapped.
  static Result<MappedArray> Map(const Array& array, const MapOptions& options = {});

  explicit MappedArray(std::shared_ptr<internal::Loan> loan);
  MappedArray(MappedArray&&) noexcept;
  MappedArray& operator=(MappedArray&&) noexcept;
  // Unmaps the memory. Returns once the daemon has ended the loan, so that a write that follows is
  // not refused; at most some seconds where the daemon does not answer.
  ~MappedArray();

  // The first element, in this process's memory; null on a GPU. What is written there without
  // `hand_over` stays in this process.
  std::byte* data() const;
  // `count` elements of a contiguous array.
  template <typename T>
  std::span<T> as(size_t count) const {
    return {reinterpret_cast<T*>(data()), count};
  }
  // Bytes from one element to the next along each axis.
  const std::vector<int64_t>& strides() const;
  // `devices/{device}`; a GPU's has its UUID.
  const std::string& device() const;
  const std::string& device_kind() const;

  // On a GPU: the handle for cuMemImportFromShareableHandle (POSIX file descriptor), this object's
  // own; the size to map; and where in it the first element lies. Unmap it before this goes.
  int descriptor() const;
  int64_t memory_bytes() const;
  int64_t offset() const;

 private:
  std::shared_ptr<internal::Loan> loan_;
};

}  // namespace stride
