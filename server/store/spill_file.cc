#include "server/store/spill_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/folder.h"
#include "server/base/system_error.h"

namespace stride::store {
namespace {

constexpr char kPrefix[] = "spill-";

// Some file systems do not support nameless files: there the file has a name for a moment.
absl::StatusOr<UniqueFd> MakeNameless(const Folder& folder) {
  auto file = folder.MakeNamelessFile();
  if (file.ok()) return file;
  std::string name = kPrefix;
  file = folder.MakeFile(&name);
  if (!file.ok()) return file;
  if (!folder.Remove(name)) return absl::ErrnoToStatus(errno, "hiding a spill file");
  return file;
}

// The error for the client whose array is in the file.
absl::Status WriteError(int error) {
  std::string text = absl::StrCat("an array could not be written to disk: ",
                                  std::generic_category().message(error));
  if (error != ENOSPC && error != EDQUOT)
    return MakeError(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL, text);
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY, text,
                  absl::Seconds(1));
}

}  // namespace

absl::Status PrepareSpillFolder(const std::string& path) {
  auto folder = Folder::MakeIn(path);
  if (!folder.ok()) return folder.status();
  auto names = folder->List();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name.rfind(kPrefix, 0) == 0) folder->Remove(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CreateSpillFile(const std::string& path, uint64_t size) {
  auto folder = Folder::OpenIn(path);
  if (!folder.ok()) return folder.status();
  auto fd = MakeNameless(*folder);
  if (!fd.ok()) return fd;
  int error;
  do {
    error = posix_fallocate(fd->get(), 0, static_cast<off_t>(size));
  } while (error == EINTR);
  if (error != 0) return absl::ErrnoToStatus(error, "reserving room for a spill file");
  return fd;
}

absl::Status CheckSpillFile(int fd, uint64_t size) {
  struct stat info;
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "asking for a spill file's size");
  if (!S_ISREG(info.st_mode) || info.st_nlink != 0)
    return absl::InvalidArgumentError("the descriptor is not a nameless file");
  if (static_cast<uint64_t>(info.st_size) < size)
    return absl::InvalidArgumentError("the spill file is smaller than declared");
  return absl::OkStatus();
}

absl::Status ReadAt(int fd, uint64_t offset, std::byte* bytes, size_t size) {
  while (size > 0) {
    ssize_t count = pread(fd, bytes, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "reading a spill file");
    if (count == 0) return absl::DataLossError("a spill file ends early");
    bytes += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status WriteAt(int fd, uint64_t offset, const std::byte* bytes, size_t size) {
  while (size > 0) {
    ssize_t count = pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return WriteError(errno);
    bytes += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace stride::store
