#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride::store {

// Files for arrays that fit neither a device nor host memory. They have no name: no other process
// can open them, and closing the last descriptor removes them.

// Creates the folder for this user alone (base/folder.h), and removes files left on file systems
// without nameless files.
absl::Status PrepareSpillFolder(const std::string& path);

// A file of `size` bytes, with disk blocks allocated. RESOURCE_EXHAUSTED when the disk has no room.
absl::StatusOr<UniqueFd> CreateSpillFile(const std::string& path, uint64_t size);

// OK when `fd` is a nameless file of at least `size` bytes.
absl::Status CheckSpillFile(int fd, uint64_t size);

// Transfer all of `size` bytes or return an error. A write to a full disk returns
// RESOURCE_EXHAUSTED with a retry delay.
absl::Status ReadAt(int fd, uint64_t offset, std::byte* bytes, size_t size);
absl::Status WriteAt(int fd, uint64_t offset, const std::byte* bytes, size_t size);

}  // namespace stride::store
