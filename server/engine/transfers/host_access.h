#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/operations/operations.h"
#include "server/engine/scheduling/scheduler.h"

namespace stride::engine {

// A task without a worker: an access of the daemon to a buffer, at its position among all accesses.
std::shared_ptr<Task> HostTask(const TenantId& tenant, const char* label, Use use);

// Error text for a deadline that passes before an access which excludes others.
inline constexpr char kInUse[] = "the deadline passed while earlier work used the array";

// A host access that a thread waits for. The destructor ends it and begins a transaction.
class HostAccess {
 public:
  HostAccess(Core* core, Scheduler* scheduler, std::shared_ptr<Task> task);
  ~HostAccess();

  // Enqueues the access after all earlier ones and before all later ones.
  absl::Status Enqueue(TenantTransaction& transaction);
  // Blocks until the access is granted or has ended without a grant, or `deadline`: then the error
  // has the text `late`. Returns the error of the access, or of the array if one is given.
  absl::Status Await(SteadyTime deadline, std::string_view late, const session::Array* array);
  // Later accesses may begin. The buffer keeps its content if the access was never granted.
  void End(TenantTransaction& transaction);

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<Task> task_;
  const std::shared_ptr<absl::Notification> granted_ = std::make_shared<absl::Notification>();
  bool enqueued_ = false;
};

// A read of an array's content. Later writers wait until its last owner releases it. Any thread.
class ReadAccess {
 public:
  // Enqueues the read after all earlier accesses and before all later ones. Makes a contiguous copy
  // of a view that has gaps. The last owner has no transaction when it releases the read.
  // `of_body`: a read for a loop or a branch in flight. The array is contiguous and complete; the
  // read has no position among the accesses and does not count against quotas.
  static absl::StatusOr<std::shared_ptr<ReadAccess>> Enqueue(
      TenantTransaction& transaction, Core* core, Scheduler* scheduler, Operations* operations,
      const TenantId& tenant, session::ArrayPtr array, bool of_body = false);
  ReadAccess(Core* core, Scheduler* scheduler, std::shared_ptr<Task> task, session::ArrayPtr array)
      : access_(core, scheduler, std::move(task)), array_(std::move(array)) {}

  // Blocks until the array is ready or has failed, or `deadline`. The caller has no transaction.
  absl::Status Await(SteadyTime deadline) {
    return access_.Await(deadline, "the deadline passed before the array was ready", array_.get());
  }

  const session::Array& array() const { return *array_; }

 private:
  HostAccess access_;
  const session::ArrayPtr array_;
};

}  // namespace stride::engine
