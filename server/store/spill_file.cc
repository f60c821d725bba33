#include "server/store/spill_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/system_error.h"

namespace stride::store {
namespace {

constexpr char kPrefix[] = "spill-";

// Some file systems know no nameless files: there a name lives for the blink of an eye.
absl::StatusOr<UniqueFd> OpenNameless(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (fd.valid()) return fd;
  std::string path = absl::StrCat(folder, "/", kPrefix, "XXXXXX");
  fd = UniqueFd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return SystemError(errno, "making a spill file");
  if (unlink(path.c_str()) != 0) return absl::ErrnoToStatus(errno, "hiding a spill file");
  return fd;
}

// What a client may hear whose own array lies in a file.
absl::Status WriteError(int error) {
  std::string text = absl::StrCat("an array could not be written to disk: ",
                                  std::generic_category().message(error));
  if (error != ENOSPC && error != EDQUOT)
    return MakeError(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL, text);
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY, text,
                  absl::Seconds(1));
}

}  // namespace

absl::Status PrepareSpillFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  }
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make the folder ", folder, ": ", error.message()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    std::error_code ignored;
    std::filesystem::remove(entry.path(), ignored);
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CreateSpillFile(const std::string& folder, uint64_t size) {
  auto fd = OpenNameless(folder);
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
