#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/ids.h"
#include "server/store/arena.h"

namespace stride::store {

// Something that reads or writes a buffer and has not ended: a scheduler's task. Only its identity
// matters here.
struct Access {
  virtual ~Access() = default;
};

// Collects blocks whose buffers died, wherever that happened, until the scheduler frees them under
// its lock. Thread-safe.
class Reclaimer {
 public:
  struct Entry {
    TenantId tenant;
    int device;
    Allocation allocation;
  };
  // Told of every buffer's size when it is made, and of its negative when it dies. Called on any
  // thread, with the scheduler's lock or without; must not block.
  using Account = std::function<void(const TenantId& tenant, int64_t bytes)>;

  Reclaimer() = default;
  explicit Reclaimer(Account account) : account_(std::move(account)) {}

  void Add(Entry entry);
  std::vector<Entry> TakeAll();
  void Count(const TenantId& tenant, int64_t bytes) const {
    if (account_) account_(tenant, bytes);
  }

 private:
  const Account account_;
  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

// The bytes behind one or more arrays (views share them). Not thread-safe: the scheduler's lock
// guards all members.
struct Buffer {
  Buffer(TenantId tenant, int64_t size, std::shared_ptr<Reclaimer> reclaimer)
      : tenant(std::move(tenant)), size(size), reclaimer_(std::move(reclaimer)) {
    reclaimer_->Count(this->tenant, size);
  }
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Gives one device's block back.
  void DropReplica(int device);
  // Only `device` keeps the content, as after a write there.
  void KeepOnly(int device);

  const TenantId tenant;
  const int64_t size;  // bytes
  // Device index -> block with the content as of the last write that was sent, or that is being
  // written.
  std::map<int, Allocation> replicas;
  // Content that came inside a request and is on no device yet. Dropped at the first write.
  std::shared_ptr<const std::string> inline_bytes;
  // First error that spoiled the content; OK while it is good.
  absl::Status error;
  // Unfinished accesses, for ordering: the last writer, and the readers since.
  std::shared_ptr<Access> writer;
  std::vector<std::shared_ptr<Access>> readers;

 private:
  std::shared_ptr<Reclaimer> reclaimer_;
};

}  // namespace stride::store
