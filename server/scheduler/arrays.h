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

// The access is granted, or has ended without that. Two threads may report both, in either order:
// each reports after its transaction, and a waiting caller may give up, which ends
// the access, between its grant and the word of it. Calls that fetch do so again and again, since
// they wait in short slices to notice clients that went away.
void NotifyOnce(Task& task, std::shared_ptr<absl::Notification> granted);

// Reads an array's content: holds off writers until the last copy of it is dropped. Any thread.
class ReadAccess {
 public:
  // Takes its place among the accesses: behind those so far, before all that come. Makes a
  // contiguous copy of a view that has gaps. No transaction is open when the last owner
  // lets go. `of_body`: for a loop or a branch in flight: the array is contiguous and made,
  // it has no place of its own among the accesses, and is no operation to quotas.
  static absl::StatusOr<std::shared_ptr<ReadAccess>> Enqueue(
      TenantTransaction& transaction, Core* core, Scheduler* scheduler, Operations* operations,
      const TenantId& tenant, std::shared_ptr<session::Array> array, bool of_body = false);
  // The same, and waits until the array is ready. The caller has no transaction.
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

  // Until the array is ready or has failed. The caller has no transaction.
  absl::Status Await(SteadyTime deadline);

  const session::Array& array() const { return *array_; }

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  const std::shared_ptr<Task> task_;
  const std::shared_ptr<session::Array> array_;
  const std::shared_ptr<absl::Notification> granted_;
};

// The arrays of the catalogue as clients see them, and their transfers. Thread-safe.
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

  // Frees incomplete uploads whose lease ended. Caller holds all locks.
  void EndLeases(GlobalTransaction& transaction, SteadyTime now);

 private:
  absl::Status Remove(TenantTransaction& transaction, const TenantId& tenant,
                      const session::ArrayName& name);
  // Bytes, within the inline limit.
  absl::StatusOr<int64_t> InlineSize(const session::Array& array) const;
  absl::StatusOr<std::shared_ptr<session::Array>> FindOrBeginReceiving(
      TenantTransaction& transaction, const TenantId& tenant, const session::ArrayName& name,
      const v1::PutArrayRequest::Header& header, const ArrayInfo& info);
  // Of an array spread over devices.
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
  // An upload into a new array that is not complete. The array goes when its handle is released.
  struct Incoming {
    std::weak_ptr<session::Array> array;
    std::shared_ptr<session::Receiving> receiving;
  };
  void NoteReceiving(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array);
  // Takes off the list what is complete, and ends what nobody will complete.
  void EndLeases(GlobalTransaction& transaction, std::vector<Incoming>& receiving, SteadyTime now);
  PerPartition<std::vector<Incoming>> receiving_;
};

}  // namespace stride::scheduler
