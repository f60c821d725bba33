#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/array_spec.h"
#include "server/engine/core/core.h"
#include "server/engine/operations/array_reader.h"
#include "server/engine/operations/operations.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/array_service.h"
#include "server/engine/transfers/receivers.h"
#include "server/engine/transfers/regions.h"

namespace stride::engine {

class RangeAccess;

// Serves the catalogue's arrays to clients, and transfers their bytes. Thread-safe.
class Arrays : public ArrayService, public ArrayReader {
 public:
  Arrays(Core* core, Scheduler* scheduler, Operations* operations, Regions* regions)
      : core_(core),
        scheduler_(scheduler),
        operations_(operations),
        regions_(regions),
        receivers_(core, scheduler, operations) {}

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
  absl::StatusOr<std::unique_ptr<Download>> BeginFetch(const TenantId& tenant,
                                                       const std::string& session,
                                                       uint64_t handle) override;

  // --- ArrayReader ---
  std::optional<v1::InlineArray> ReadAtOnce(TenantTransaction& transaction, const TenantId& tenant,
                                            const session::Array& array) override;
  absl::StatusOr<v1::InlineArray> ReadForBody(const TenantId& tenant,
                                              std::shared_ptr<session::Array> array) override;
  absl::StatusOr<v1::InlineArray> ReadInline(const TenantId& tenant,
                                             std::shared_ptr<session::Array> array,
                                             SteadyTime deadline) override;

  // As Receivers::Restore and EndLeases.
  void RestoreReceiving(GlobalTransaction& transaction,
                        const std::shared_ptr<session::Array>& array, int device,
                        const recovery::ReceivingRecord& record) {
    receivers_.Restore(transaction, array, device, record);
  }
  void EndLeases(GlobalTransaction& transaction, SteadyTime now) {
    receivers_.EndLeases(transaction, now);
  }

 private:
  absl::Status Remove(TenantTransaction& transaction, const TenantId& tenant,
                      const session::ArrayName& name);
  // Bytes of the array. SIZE_LIMIT above EngineOptions::max_inline_bytes.
  absl::StatusOr<int64_t> InlineSize(const session::Array& array) const;
  // Finds or makes the array, and enqueues write accesses to bytes [begin, end): one for each of
  // its parts, null for a part that takes none of them.
  absl::StatusOr<std::shared_ptr<session::Array>> EnqueueWrites(
      TenantTransaction& transaction, const TenantId& tenant, const session::ArrayName& name,
      const v1::PutArrayRequest::Header& header, const ArrayInfo& info, const Bytes& range,
      std::vector<std::unique_ptr<RangeAccess>>* accesses);
  absl::StatusOr<std::unique_ptr<Upload>> OpenSharded(
      const session::ArrayPtr& array, const Bytes& range,
      std::vector<std::unique_ptr<RangeAccess>> accesses, SteadyTime deadline,
      std::shared_ptr<Region> region);
  // Reads a range after all operations that were accepted before. `of_body`: as ReadAccess has it.
  absl::StatusOr<std::unique_ptr<ByteSource>> EnqueueRead(TenantTransaction& transaction,
                                                          const TenantId& tenant,
                                                          const session::ArrayPtr& array,
                                                          const Bytes& range, bool of_body = false);
  absl::StatusOr<v1::InlineArray> ReadNow(const TenantId& tenant, const session::ArrayPtr& array,
                                          int64_t size, SteadyTime deadline, bool of_body);

  Core* const core_;
  Scheduler* const scheduler_;
  Operations* const operations_;
  Regions* const regions_;
  Receivers receivers_;
};

}  // namespace stride::engine
