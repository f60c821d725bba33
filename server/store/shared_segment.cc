#include "server/store/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/base/error.h"
#include "server/base/system_error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace stride::store {
namespace {

// Its size can never change. If the kernel supports that, it cannot be executed either.
absl::StatusOr<UniqueFd> CreateFile(int64_t size) {
  constexpr char kName[] = "stride-region";
  UniqueFd fd(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd.valid() && errno == EINVAL)
    fd.Reset(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError(errno, "creating a region");
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
    return SystemError(errno, "sizing a region");
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return SystemError(errno, "sealing a region");
  return fd;
}

absl::Status NoMemory() {
  return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_QUOTA,
                  "this machine has no memory for the region; try again later, or a smaller one",
                  absl::Seconds(1));
}

// Whether allocation errors are reported here, instead of by a signal at the first use.
absl::Status Populate(int fd, const MemoryMap& map) {
  // For systems with huge pages on request: fewer faults here, and fewer pages to pin.
  madvise(map.data(), map.size(), MADV_HUGEPAGE);
  if (madvise(map.data(), map.size(), MADV_POPULATE_WRITE) == 0) return absl::OkStatus();
  if (errno != EINVAL) return NoMemory();
  // An older kernel: allocate the pages now, and map them one by one.
  if (fallocate(fd, 0, 0, static_cast<off_t>(map.size())) != 0) return NoMemory();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Create(int64_t size) {
  absl::StatusOr<UniqueFd> fd = CreateFile(size);
  if (!fd.ok()) return fd.status();
  absl::StatusOr<MemoryMap> map =
      MemoryMap::Map(fd->get(), static_cast<uint64_t>(size), /*writable=*/true);
  if (!map.ok()) return map.status();
  if (absl::Status status = Populate(fd->get(), *map); !status.ok()) return status;
  return std::unique_ptr<SharedSegment>(new SharedSegment(*std::move(fd), *std::move(map)));
}

SharedSegment::~SharedSegment() {
  if (leave_pages_) return;
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
            static_cast<off_t>(map_.size()));
}

}  // namespace stride::store
