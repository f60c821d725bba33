#include "server/worker/cpu/lower/arena_table.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "server/base/memory_file.h"
#include "server/store/dtype.h"

namespace stride::cpu {
namespace {

// A 32-bit index into 4-byte elements reaches 8 GiB in either direction. Address space is
// plentiful: 128 TiB of it have room for thousands of arenas.
constexpr uint64_t kGuardBytes = uint64_t{8} << 30;
constexpr uint64_t kPageBytes = 4096;

uint64_t RoundToPages(uint64_t size) { return (size + kPageBytes - 1) / kPageBytes * kPageBytes; }

absl::Status OutOfBounds() {
  return absl::InvalidArgumentError("an operand lies outside its arena");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Arena>> Arena::Map(int fd, uint64_t size, bool writable) {
  if (size == 0 || size > (uint64_t{1} << 46)) {
    return absl::InvalidArgumentError("an arena of this size cannot be mapped");
  }
  uint64_t reserved_bytes = RoundToPages(size) + 2 * kGuardBytes;
  void* reserved =
      mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return absl::ErrnoToStatus(errno, "reserving addresses");
  std::byte* data = static_cast<std::byte*>(reserved) + kGuardBytes;
  const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  if (mmap(data, size, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    absl::Status status = absl::ErrnoToStatus(errno, "mapping an arena");
    munmap(reserved, reserved_bytes);
    return status;
  }
  return std::shared_ptr<const Arena>(new Arena(static_cast<std::byte*>(reserved), data, size));
}

Arena::~Arena() { munmap(reserved_, RoundToPages(size_) + 2 * kGuardBytes); }

absl::Status ArenaTable::Map(uint64_t arena, uint64_t size, int fd, bool writable) {
  if (absl::Status s = CheckMemoryFile(fd, size); !s.ok()) return s;
  absl::StatusOr<std::shared_ptr<const Arena>> mapped = Arena::Map(fd, size, writable);
  if (!mapped.ok()) return mapped.status();
  if (!arenas_.emplace(arena, *std::move(mapped)).second) {
    return absl::InternalError(absl::StrCat("arena ", arena, " is mapped already"));
  }
  return absl::OkStatus();
}

absl::Status ArenaTable::Unmap(uint64_t arena) {
  if (arenas_.erase(arena) > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("arena ", arena, " is not mapped"));
}

absl::StatusOr<std::shared_ptr<const Arena>> ArenaTable::Find(uint64_t arena) const {
  auto found = arenas_.find(arena);
  if (found != arenas_.end()) return found->second;
  return absl::InvalidArgumentError(absl::StrCat("arena ", arena, " is not mapped"));
}

absl::StatusOr<Place> ArenaTable::Bytes(uint64_t arena, uint64_t offset, uint64_t size) const {
  auto found = Find(arena);
  if (!found.ok()) return found.status();
  if (offset > (*found)->size() || size > (*found)->size() - offset) return OutOfBounds();
  return Place{(*found)->data() + offset, *found};
}

absl::StatusOr<Place> ArenaTable::Elements(const wire::Operand& operand,
                                           absl::Span<const int64_t> extents) const {
  auto found = Find(operand.arena());
  if (!found.ok()) return found.status();
  std::optional<DType> dtype = DTypeFromNumber(operand.dtype());
  if (!dtype.has_value() || operand.strides_size() != static_cast<int>(extents.size())) {
    return absl::InvalidArgumentError("an operand's strides or dtype make no sense");
  }
  __int128 low = operand.offset(), high = operand.offset();
  for (size_t i = 0; i < extents.size(); ++i) {
    __int128 reach = static_cast<__int128>(extents[i] - 1) * operand.strides(static_cast<int>(i));
    (reach < 0 ? low : high) += reach;
  }
  if (low < 0 || high + ItemSize(*dtype) > (*found)->size()) return OutOfBounds();
  return Place{(*found)->data() + operand.offset(), *found};
}

}  // namespace stride::cpu
