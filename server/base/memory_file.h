#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride {

// Anonymous shared memory (memfd) whose size is sealed, so that each holder of the descriptor can
// map it without fear of SIGBUS. Fresh memory is zero. `name` only appears in /proc.
absl::StatusOr<UniqueFd> CreateMemoryFile(const char* name, uint64_t size);

// The same, filled with `content` and sealed against writes.
absl::StatusOr<UniqueFd> CreateSealedCopy(const char* name, std::string_view content);

// Opens the file of `fd` again, read-only and with its own read offset.
absl::StatusOr<UniqueFd> ReopenForReading(int fd);

// OK when `fd` is a memfd of at least `size` bytes that cannot shrink. Each descriptor from another
// process must pass this check.
absl::Status CheckMemoryFile(int fd, uint64_t size);

absl::StatusOr<uint64_t> MemoryFileSize(int fd);

// A shared mapping of a descriptor; unmapped on destruction. Movable, not copyable.
class MemoryMap {
 public:
  MemoryMap() = default;
  MemoryMap(MemoryMap&& other) noexcept;
  MemoryMap& operator=(MemoryMap&& other) noexcept;
  ~MemoryMap();

  // Maps [0, size). Read-only unless `writable`.
  static absl::StatusOr<MemoryMap> Map(int fd, uint64_t size, bool writable);

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace stride
