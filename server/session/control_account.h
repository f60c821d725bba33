#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/ids.h"

namespace stride::session {

class ControlAccount;

// An object's share of its tenant's control bytes, while the object lives. The account outlives it.
// One thread at a time.
class ControlCharge {
 public:
  ControlCharge() = default;
  ControlCharge(ControlCharge&& other) noexcept { *this = std::move(other); }
  ControlCharge& operator=(ControlCharge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    std::swap(droppable_, other.droppable_);
    return *this;
  }
  ~ControlCharge();

  int64_t bytes() const { return bytes_; }
  // Null: nothing was charged.
  const std::shared_ptr<ControlAccount>& account() const { return account_; }

  // Sets the object's bytes, also beyond the limit.
  void Set(int64_t bytes);
  // RESOURCE_EXHAUSTED when the additional bytes exceed the limit.
  absl::Status Grow(int64_t bytes);
  // From now on the object may be dropped when its tenant needs room.
  void MakeDroppable();

 private:
  friend class ControlAccount;
  ControlCharge(std::shared_ptr<ControlAccount> account, int64_t bytes)
      : account_(std::move(account)), bytes_(bytes) {}

  std::shared_ptr<ControlAccount> account_;
  int64_t bytes_ = 0;
  bool droppable_ = false;
};

// Notified when a tenant exceeds its limit and some of its objects can be dropped. Shared by all
// accounts. Thread-safe.
class RoomMaker {
 public:
  // `make` is called with any lock of the engine held, and must not block. Empty: no call.
  void Set(std::function<void(const TenantId&)> make) {
    absl::MutexLock lock(&mutex_);
    make_ = std::move(make);
  }
  void Ask(const TenantId& tenant) {
    absl::MutexLock lock(&mutex_);
    if (make_) make_(tenant);
  }

 private:
  absl::Mutex mutex_;
  std::function<void(const TenantId&)> make_ ABSL_GUARDED_BY(mutex_);
};

// One tenant's control bytes: the daemon's memory for the tenant's objects, without the content of
// arrays. All kinds of objects are charged here and only here, with at least their cost
// (server/session/control_cost.h). Objects that can be dropped do not block others.
//
// Thread-safe: the tenant's own atomics, which only its objects use.
class ControlAccount : public std::enable_shared_from_this<ControlAccount> {
 public:
  ControlAccount(TenantId tenant, int64_t limit, std::shared_ptr<RoomMaker> room)
      : tenant_(std::move(tenant)), room_(std::move(room)), limit_(limit) {}

  // RESOURCE_EXHAUSTED (QUOTA, `control-bytes`) when the additional bytes exceed the limit.
  absl::StatusOr<ControlCharge> Take(int64_t bytes);
  // For an existing object: counted also beyond the limit.
  ControlCharge Hold(int64_t bytes) {
    Add(bytes);
    return {shared_from_this(), bytes};
  }
  // The same for an owner that releases the bytes itself.
  void Add(int64_t bytes) { firm_.fetch_add(bytes, std::memory_order_relaxed); }

  // The bytes above the limit after `more`, which must be dropped.
  int64_t Excess(int64_t more) const;
  // Room was made; the next shortage requests it again.
  void RoomMade() { asked_.store(false); }

  void set_limit(int64_t limit) { limit_.store(limit, std::memory_order_relaxed); }
  int64_t used() const {
    return firm_.load(std::memory_order_relaxed) + droppable_.load(std::memory_order_relaxed);
  }

 private:
  friend class ControlCharge;
  absl::Status Enter(int64_t bytes);

  const TenantId tenant_;
  const std::shared_ptr<RoomMaker> room_;
  std::atomic<int64_t> limit_;
  std::atomic<int64_t> firm_{0}, droppable_{0};
  std::atomic<bool> asked_{false};
};

}  // namespace stride::session
