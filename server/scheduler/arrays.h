#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "server/base/steady_time.h"
#include "server/base/stripe.h"
#include "server/scheduler/array_reader.h"
#include "server/scheduler/core.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/regions.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/service/array_service.h"

namespace stride::recovery {
class ReceivingRecord;
}

namespace stride::scheduler {

// Notifies when the access is granted or has ended without a grant. Two threads may report both, in
// either order: each reports after its transaction, and a caller may give up, which ends the
// access, before the grant is reported. Fetch calls give up often: they wait in short slices to
// notice disconnected clients.
void NotifyOnce(Task& task, std::shared_ptr<absl::Notification> granted);

// A read of an array's content. Later writers wait until its last owner releases it. Any thread.
class ReadAccess {
 public:
  // Enqueues the read after all earlier accesses and before all later ones. Makes a contiguous copy
  // of a view that has gaps. The last owner has no transaction when it releases the read.
  // `of_body`: a read for a loop or a branch in flight. The array is contiguous and complete; the
  // read has no position among the accesses and does not count against quotas.
  static absl::StatusOr<std::shared_ptr<ReadAccess>> Enqueue(
      TenantTransaction& transaction, Core* core, Scheduler* scheduler, Operations* operations,
      const TenantId& tenant, std::shared_ptr<session::Array> array, bool of_body = false);
  // Enqueues the read, then blocks until the array is ready or `deadline`. The caller has no
  // transaction.
  static absl::StatusOr<std::shared_ptr<ReadAccess>> Begin(Core* core, Scheduler* scheduler,
                                                           Operations* operations,
                                                           const TenantId& tenant,
                                                           std::shared_ptr<session::Array> array,
                                                           SteadyTime deadline);
  ReadAccess(Core* core, Scheduler* scheduler, std::shared_ptr<Task> task,
             std::shared_ptr<session::Array> array, std::shared_ptr<absl::Notification> granted)
      : core_(core),
        scheduler_(scheduler),
        task_(std::move(task)),
        array_(std::move(array)),
        granted_(std::move(granted)) {}
  ~ReadAccess();

  // Blocks until the array is ready or has failed, or `deadline`. The caller has no transaction.
  absl::Status Await(SteadyTime deadline);

  const session::Array& array() const { return *array_; }

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<Task> task_;
  const std::shared_ptr<session::Array> array_;
  const std::shared_ptr<absl::Notification> granted_;
};

// Serves the catalogue's arrays to clients, and transfers their bytes. Thread-safe.
class Arrays : public ArrayService, public ArrayReader {
 public:
  Arrays(Core* core, Scheduler* scheduler, Operations* operations, Regions* regions)
      : core_(core), scheduler_(scheduler), operations_(operations), regions_(regions) {}

  // --- ArrayService ---
  absl::StatusOr<v1::Array> Create(const TenantId& tenant,
                                   const v1::CreateArrayRequest& request) override;
  absl::StatusOr<v1::Array> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListArraysResponse> List(const TenantId& tenant,
                                              const v1::ListArraysRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<std::unique_ptr<Upload>> BeginUpload(const TenantId& tenant,
                                                      const v1::PutArrayRequest::Header& header,
                                                      SteadyTime deadline) override;
  absl::StatusOr<std::unique_ptr<Download>> BeginDownload(const TenantId& tenant,
                                                          const v1::FetchArrayRequest& request,
                                                          SteadyTime deadline) override;
  absl::StatusOr<std::unique_ptr<InlineFetch>> BeginFetch(const TenantId& tenant,
                                                          const std::string& session,
                                                          uint64_t handle) override;

  absl::StatusOr<std::unique_ptr<Download>> BeginDownload(
      const TenantId& tenant, std::shared_ptr<session::Array> array, int64_t begin, int64_t end,
      SteadyTime deadline, std::shared_ptr<Region> region = nullptr, int64_t region_offset = 0);

  // --- ArrayReader ---
  std::optional<v1::InlineArray> ReadAtOnce(TenantTransaction& transaction, const TenantId& tenant,
                                            const session::Array& array) override;
  absl::StatusOr<v1::InlineArray> ReadForBody(const TenantId& tenant,
                                              std::shared_ptr<session::Array> array) override;
  absl::StatusOr<v1::InlineArray> ReadInline(const TenantId& tenant,
                                             std::shared_ptr<session::Array> array,
                                             SteadyTime deadline) override;

  // Restores an upload that an earlier daemon had begun.
  void RestoreReceiving(GlobalTransaction& transaction,
                        const std::shared_ptr<session::Array>& array, int device,
                        const recovery::ReceivingRecord& record);

  // Frees incomplete uploads whose lease ended.
  void EndLeases(GlobalTransaction& transaction, SteadyTime now);

 private:
  absl::Status Remove(TenantTransaction& transaction, const TenantId& tenant,
                      const session::ArrayName& name);
  // Bytes of the array. SIZE_LIMIT above EngineOptions::max_inline_bytes.
  absl::StatusOr<int64_t> InlineSize(const session::Array& array) const;
  absl::StatusOr<std::shared_ptr<session::Array>> FindOrBeginReceiving(
      TenantTransaction& transaction, const TenantId& tenant, const session::ArrayName& name,
      const v1::PutArrayRequest::Header& header, const ArrayInfo& info);
  // Makes an array spread over devices that receives an upload.
  absl::StatusOr<std::shared_ptr<session::Array>> MakeShardedReceiver(
      TenantTransaction& transaction, const TenantId& tenant, const session::ArrayName& name,
      const v1::PutArrayRequest::Header& header, const ArrayInfo& info, SteadyTime expire);
  absl::StatusOr<std::unique_ptr<Upload>> BeginShardedUpload(
      const TenantId& tenant, const std::shared_ptr<session::Array>& array, int64_t begin,
      int64_t end, SteadyTime deadline);
  absl::StatusOr<std::unique_ptr<Upload>> BeginOverwrite(const TenantId& tenant,
                                                         std::shared_ptr<session::Array> array,
                                                         const ArrayInfo& info, int64_t begin,
                                                         int64_t end, SteadyTime deadline,
                                                         std::shared_ptr<Region> region);
  std::shared_ptr<Task> MakeReceiver(const session::Array& array);
  int HomeDevice(TenantTransaction& transaction, const TenantId& tenant,
                 const session::ArrayName& name, int64_t bytes);

  Core* const core_;
  Scheduler* const scheduler_;
  Operations* const operations_;
  Regions* const regions_;
  // An incomplete upload into a new array. The array is freed when its handle is released.
  struct Incoming {
    std::weak_ptr<session::Array> array;
    std::shared_ptr<session::Receiving> receiving;
  };
  void NoteReceiving(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array);
  // Removes complete uploads from the list, and fails those that no call can complete.
  void EndLeases(GlobalTransaction& transaction, std::vector<Incoming>& receiving, SteadyTime now);
  PerPartition<std::vector<Incoming>> receiving_;
};

}  // namespace stride::scheduler
