#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/base/unique_fd.h"
#include "server/wire/plan.pb.h"

namespace stride::cpu {

// One arena's memory, mapped between inaccessible guards, so large that a kernel's overrun faults
// before it reaches other memory. Pages are not populated: a fresh arena is mostly empty, and
// touching it costs a second per GiB.
class Arena {
 public:
  static absl::StatusOr<std::shared_ptr<const Arena>> Map(int fd, uint64_t size, bool writable);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  Arena(std::byte* reserved, std::byte* data, uint64_t size)
      : reserved_(reserved), data_(data), size_(size) {}
  std::byte* const reserved_;
  std::byte* const data_;
  const uint64_t size_;
};

// An address within an arena, which stays mapped while this object exists.
struct Place {
  std::byte* address = nullptr;
  std::shared_ptr<const Arena> arena;
  uint64_t bits() const { return reinterpret_cast<uint64_t>(address); }
};

// The tenant's arenas. Not thread-safe: used by the command loop's thread. Unmapping removes an
// arena from the table; its memory is released when the last work with a Place in it is done.
class ArenaTable {
 public:
  absl::Status Map(uint64_t arena, uint64_t size, int fd, bool writable = true);
  absl::Status Unmap(uint64_t arena);
  bool Contains(uint64_t arena) const { return arenas_.count(arena) != 0; }

  // The results are checked: all requested bytes lie in the arena. INTERNAL otherwise; the daemon
  // sends no such task.
  absl::StatusOr<Place> Bytes(uint64_t arena, uint64_t offset, uint64_t size) const;
  // All elements of the operand over the extents, none of which is 0.
  absl::StatusOr<Place> Elements(const wire::Operand& operand,
                                 absl::Span<const int64_t> extents) const;

 private:
  absl::StatusOr<std::shared_ptr<const Arena>> Find(uint64_t arena) const;
  std::map<uint64_t, std::shared_ptr<const Arena>> arenas_;
};

}  // namespace stride::cpu
