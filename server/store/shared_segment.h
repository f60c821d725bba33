#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/base/memory_file.h"
#include "server/base/unique_fd.h"

namespace stride::store {

// Memory that the daemon shares with one client: a memfd of sealed size, so that no mapping of it
// can fault, with all pages allocated at the start. The client may change its bytes at any time,
// also during a read: the daemon copies them and never interprets them in place.
class SharedSegment {
 public:
  // `size` is a positive multiple of the page size. RESOURCE_EXHAUSTED when there is no memory.
  // Takes up to a second per GiB: do not call it under a lock.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create(int64_t size);
  // Frees the pages even while a client keeps the file open or mapped: the client then reads zeros,
  // and no memory is in use uncounted. Takes tens of milliseconds per GiB.
  ~SharedSegment();
  // The destructor will leave the pages to clients that have them mapped: for the daemon's own end.
  void LeavePages() { leave_pages_ = true; }
  SharedSegment(const SharedSegment&) = delete;

  int fd() const { return fd_.get(); }
  int64_t size() const { return static_cast<int64_t>(map_.size()); }
  std::byte* data() const { return map_.data(); }

 private:
  SharedSegment(UniqueFd fd, MemoryMap map) : fd_(std::move(fd)), map_(std::move(map)) {}

  const UniqueFd fd_;
  const MemoryMap map_;
  std::atomic<bool> leave_pages_ = false;
};

}  // namespace stride::store
