#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/array_spec.h"
#include "server/engine/core/core.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/upload.h"
#include "server/engine/transfers/host_access.h"

namespace stride::engine {

// Write access to a range of an array that has one buffer. The caller has no transaction
// except to make it. One thread at a time.
class RangeAccess : public WriteAccess {
 public:
  // The memory that an upload fills.
  struct Target {
    DeviceQueue* queue = nullptr;
    store::Allocation block;
  };

  // Blocks until earlier work has released the array, or `deadline`.
  virtual absl::Status Await(SteadyTime deadline) { return absl::OkStatus(); }
  // After Await: pins the buffer until the access ends, also if the array is deleted. Blocks while
  // memory is short.
  virtual absl::StatusOr<Target> Open() = 0;
  absl::StatusOr<v1::Array> Complete() override;

  const session::Array& array() const { return *array_; }
  const Bytes& range() const { return range_; }

 protected:
  RangeAccess(Core* core, Scheduler* scheduler, session::ArrayPtr array, Bytes range)
      : core_(core), scheduler_(scheduler), array_(std::move(array)), range_(range) {}
  // All bytes are in the array.
  virtual void Completed(TenantTransaction& transaction) {}
  void Hold();
  void LetGo(TenantTransaction& transaction);

  Core* const core_;
  Scheduler* const scheduler_;
  const session::ArrayPtr array_;
  const Bytes range_;
  bool holding_ = false;
};

// Write access to a range of a new array, or of one whose upload is resumed.
class ReceiveAccess : public RangeAccess {
 public:
  // The array receives an upload.
  ReceiveAccess(TenantTransaction& transaction, Core* core, Scheduler* scheduler,
                session::ArrayPtr array, Bytes range);
  ~ReceiveAccess() override;
  // Allocates the array's memory if no other range has done so.
  absl::StatusOr<Target> Open() override;
  void Keep(int64_t size) override;

 private:
  absl::StatusOr<Target> Allocate(DeviceQueue* queue);
  void Completed(TenantTransaction& transaction) override;

  const std::shared_ptr<session::Receiving> receiving_;
};

// Write access to a range of an existing array: a host access that excludes all other accesses.
class OverwriteAccess : public RangeAccess {
 public:
  // Enqueues the access after all earlier accesses. WRONG_STATE for a view with gaps.
  static absl::StatusOr<std::unique_ptr<OverwriteAccess>> Enqueue(TenantTransaction& transaction,
                                                                  Core* core, Scheduler* scheduler,
                                                                  const TenantId& tenant,
                                                                  session::ArrayPtr array,
                                                                  Bytes range);
  OverwriteAccess(Core* core, Scheduler* scheduler, std::shared_ptr<Task> task,
                  session::ArrayPtr array, Bytes range)
      : RangeAccess(core, scheduler, std::move(array), range),
        access_(core, scheduler, std::move(task)) {}
  ~OverwriteAccess() override;
  absl::Status Await(SteadyTime deadline) override;
  absl::StatusOr<Target> Open() override;

 private:
  HostAccess access_;
};

// Opens the accesses' memory and writes to it: an upload of the access's range. `region`: null for
// bytes that the call sends.
absl::StatusOr<std::unique_ptr<Upload>> OpenUpload(Core* core, Scheduler* scheduler,
                                                   std::unique_ptr<RangeAccess> access,
                                                   SteadyTime deadline,
                                                   std::shared_ptr<Region> region = nullptr);

}  // namespace stride::engine
