#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace stride::store {

// Files for arrays that neither a device nor host memory has room for. They have no name, so that
// nobody else can open them and nothing stays behind when the last descriptor is closed.

// Makes the folder, for this user alone (base/folder.h), and removes what a file system without
// nameless files may have left there.
absl::Status PrepareSpillFolder(const std::string& path);

// A file of `size` bytes, all of which the disk has room for. RESOURCE_EXHAUSTED when it has not.
absl::StatusOr<UniqueFd> CreateSpillFile(const std::string& path, uint64_t size);

// OK when `fd` is a file without a name of at least `size` bytes.
absl::Status CheckSpillFile(int fd, uint64_t size);

// All of it, or an error: of writing, RESOURCE_EXHAUSTED with a retry delay where the disk is full.
absl::Status ReadAt(int fd, uint64_t offset, std::byte* bytes, size_t size);
absl::Status WriteAt(int fd, uint64_t offset, const std::byte* bytes, size_t size);

}  // namespace stride::store
