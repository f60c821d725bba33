#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/engine/service/operation_handle.h"
#include "server/engine/service/submit_batch.h"
#include "server/ops/operation_view.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {

// Operations, and the handles that they write. Thread-safe; the caller has no transaction. Error
// fields are relative to the message passed in. `session` is `sessions/{id}`, or empty when the
// operation uses no handle.
class OperationService {
 public:
  virtual ~OperationService() = default;

  // Begins a batch for a few operations that arrived together. Blocks for the tenant's transactions
  // alone. Null: the service does not group calls.
  virtual std::unique_ptr<SubmitBatch> BeginSubmitBatch(const TenantId& tenant) = 0;
  // Whether a batch accepts the operation. It refuses those that need more than the transaction of
  // their tenant: a call of a program, and an output with a name.
  virtual bool MayBatch(const v1::Operation& operation) const = 0;

  // Accepts an operation. Does not wait for its work, which is cancelled at `deadline`; blocks only
  // to plan a program call. On error no work was accepted. The operation's new handles that are
  // valid and free then carry the error, and so do the existing handles that it was to write, with
  // all that share their memory in the session.
  virtual absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(
      const TenantId& tenant, const std::string& session, const ops::OperationView& operation,
      SteadyTime deadline) = 0;
  // Marks an operation's handles with an error as Submit does, for one that is never submitted.
  virtual void Refuse(const TenantId& tenant, const std::string& session,
                      const ops::OperationView& operation, const absl::Status& status) = 0;
  // Releases handles; unknown ones are ignored. Accepted operations that use them continue.
  virtual absl::Status Release(const TenantId& tenant, const std::string& session,
                               const v1::Release& release) = 0;
};

}  // namespace stride::engine
