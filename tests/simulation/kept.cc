#include "tests/simulation/kept.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "server/base/memory_file.h"

namespace stride::simulation {
namespace {

UniqueFd CopyOf(int fd) {
  auto size = MemoryFileSize(fd);
  auto copy = CreateMemoryFile("copy", size.value());
  std::vector<char> bytes(64 << 10);
  off_t end = static_cast<off_t>(*size);
  for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0 && at < end; at = lseek(fd, at, SEEK_DATA)) {
    off_t hole = lseek(fd, at, SEEK_HOLE);
    while (at < hole) {
      ssize_t got = pread(fd, bytes.data(), std::min<size_t>(bytes.size(), hole - at), at);
      if (got <= 0 || pwrite(copy->get(), bytes.data(), got, at) != got) std::abort();
      at += got;
    }
  }
  return std::move(*copy);
}

}  // namespace

absl::Status Kept::Store(const std::string& name, int fd) {
  point_("before a descriptor is kept");
  files_[name] = UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  point_("after a descriptor is kept");
  return absl::OkStatus();
}

void Kept::Remove(const std::string& name) {
  point_("before a descriptor is let go");
  files_.erase(name);
  point_("after a descriptor is let go");
}

std::vector<NamedFd> Kept::TakeAll() {
  std::vector<NamedFd> all;
  for (const auto& [name, fd] : files_)
    all.push_back({name, UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0))});
  return all;
}

Kept::Files Kept::Copy() const {
  Files files;
  for (const auto& [name, fd] : files_) files[name] = CopyOf(fd.get());
  return files;
}

}  // namespace stride::simulation
