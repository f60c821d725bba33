#include "server/base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/system_error.h"

namespace stride {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

absl::Status WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "filling a memory file");
    content.remove_prefix(written);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UniqueFd> CreateMemoryFile(const char* name, uint64_t size) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError(errno, "creating a memory file");
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return SystemError(errno, "sizing a memory file");
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return SystemError(errno, "sealing a memory file");
  }
  return fd;
}

absl::StatusOr<UniqueFd> CreateSealedCopy(const char* name, std::string_view content) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError(errno, "creating a memory file");
  if (absl::Status status = WriteAll(fd.get(), content); !status.ok()) return status;
  if (fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return SystemError(errno, "sealing a memory file");
  }
  return fd;
}

absl::StatusOr<UniqueFd> ReopenForReading(int fd) {
  UniqueFd copy(open(absl::StrCat("/proc/self/fd/", fd).c_str(), O_RDONLY | O_CLOEXEC));
  if (!copy.valid()) return SystemError(errno, "opening a memory file again");
  return copy;
}

absl::Status CheckMemoryFile(int fd, uint64_t size) {
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return absl::InvalidArgumentError("the descriptor is not a memory file");
  if ((seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("the memory file may shrink: its size is not sealed");
  }
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(errno, "asking a memory file's size");
  if (static_cast<uint64_t>(info.st_size) < size) {
    return absl::InvalidArgumentError("the memory file is smaller than declared");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemoryFileSize(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(errno, "asking a memory file's size");
  return static_cast<uint64_t>(info.st_size);
}

MemoryMap::MemoryMap(MemoryMap&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MemoryMap& MemoryMap::operator=(MemoryMap&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MemoryMap::~MemoryMap() {
  if (data_ != nullptr) munmap(data_, size_);
}

absl::StatusOr<MemoryMap> MemoryMap::Map(int fd, uint64_t size, bool writable) {
  MemoryMap map;
  if (size == 0) return map;
  int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return SystemError(errno, "mapping a memory file");
  map.data_ = static_cast<std::byte*>(address);
  map.size_ = size;
  return map;
}

}  // namespace stride
