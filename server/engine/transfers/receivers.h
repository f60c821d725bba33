#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/base/tenant_partition.h"
#include "server/engine/core/core.h"
#include "server/engine/operations/operations.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/session/array.h"
#include "stride/v1/array_service.pb.h"

namespace stride::recovery {
class ReceivingRecord;
}

namespace stride::engine {

// New arrays whose upload is incomplete, until every byte has arrived or their lease ends. Tasks
// that read such an array wait. Thread-safe.
class Receivers {
 public:
  Receivers(Core* core, Scheduler* scheduler, Operations* operations)
      : core_(core), scheduler_(scheduler), operations_(operations) {}

  // The array that the header names: an existing one that the upload may continue or overwrite, or
  // a new one. A sharded array needs a global transaction, and so does a named one.
  absl::StatusOr<std::shared_ptr<session::Array>> FindOrMake(
      TenantTransaction& transaction, const TenantId& tenant, const session::ArrayName& name,
      const v1::PutArrayRequest::Header& header, const ArrayInfo& info);
  // Ends the upload of a deleted array.
  void Cancel(TenantTransaction& transaction, const session::ArrayPtr& array);
  // Restores an upload that an earlier daemon had begun.
  void Restore(GlobalTransaction& transaction, const std::shared_ptr<session::Array>& array,
               int device, const recovery::ReceivingRecord& record);
  // Frees incomplete uploads whose lease ended.
  void EndLeases(GlobalTransaction& transaction, SteadyTime now);

 private:
  // An incomplete upload. The array is freed when its handle is released.
  struct Incoming {
    std::weak_ptr<session::Array> array;
    std::shared_ptr<session::Receiving> receiving;
  };

  absl::Status CheckExisting(const session::ArrayPtr& array, const session::ArrayName& name,
                             const v1::PutArrayRequest::Header& header,
                             const ArrayInfo& info) const;
  // The devices of a new array's parts; one device for an array in one piece.
  absl::StatusOr<ops::Spread> SpreadFor(TenantTransaction& transaction, const TenantId& tenant,
                                        const session::ArrayName& name,
                                        const v1::PutArrayRequest::Header& header,
                                        const ArrayInfo& info);
  absl::StatusOr<std::shared_ptr<session::Array>> Make(TenantTransaction& transaction,
                                                       const TenantId& tenant,
                                                       const session::ArrayName& name,
                                                       const v1::PutArrayRequest::Header& header,
                                                       const ArrayInfo& info);
  // Appends arrays without names, which receive their bytes, or are copies of the one that does.
  absl::Status AddParts(TenantTransaction& transaction, const TenantId& tenant,
                        const ArrayInfo& info, const ops::Spread& spread,
                        session::ArrayList* parts);
  void Begin(session::Array& array, int device);
  void Add(TenantTransaction& transaction, const std::shared_ptr<session::Array>& array,
           std::shared_ptr<Task> task);
  // The device for a new array whose client names none.
  int HomeDevice(TenantTransaction& transaction, const TenantId& tenant,
                 const session::ArrayName& name, int64_t bytes);
  // Removes complete uploads from the list, and fails those that no call can complete.
  void EndLeases(GlobalTransaction& transaction, std::vector<Incoming>& incoming, SteadyTime now);
  // Ends the uploads of the array's parts with an error.
  void EndParts(TenantTransaction& transaction, absl::Span<const session::ArrayPtr> parts,
                const absl::Status& status);

  Core* const core_;
  Scheduler* const scheduler_;
  Operations* const operations_;
  PerPartition<std::vector<Incoming>> incoming_;
};

}  // namespace stride::engine
