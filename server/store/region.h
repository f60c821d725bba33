#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/base/memory_file.h"
#include "server/base/unique_fd.h"

namespace stride::store {

// Memory that the daemon shares with one client: a memfd whose size is sealed, so that no mapping
// of it can fault, with all pages present from the start. Its bytes are the client's and may change
// at any time, also while they are read: they are copied, never judged.
class Region {
 public:
  // `size` is a positive multiple of the page size. RESOURCE_EXHAUSTED when there is no memory.
  // Takes up to a second a GiB: not to be called under a lock.
  static absl::StatusOr<std::unique_ptr<Region>> Create(int64_t size);
  // Gives the pages back, also where a client keeps the file open or mapped, which then reads
  // zeros: nobody can hold memory that is not counted any more. Takes tens of milliseconds a GiB.
  ~Region();
  // Its end leaves the pages to whoever has it mapped: for the end of the daemon, which counts no
  // more.
  void LeavePages() { leave_pages_ = true; }
  Region(const Region&) = delete;

  int fd() const { return fd_.get(); }
  int64_t size() const { return static_cast<int64_t>(map_.size()); }
  std::byte* data() const { return map_.data(); }

 private:
  Region(UniqueFd fd, MemoryMap map) : fd_(std::move(fd)), map_(std::move(map)) {}

  const UniqueFd fd_;
  const MemoryMap map_;
  std::atomic<bool> leave_pages_ = false;
};

}  // namespace stride::store
