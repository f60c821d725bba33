#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/service/operation_handle.h"
#include "server/ops/operation_view.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {

// Operations of one tenant that arrive together. The batch owns one transaction of the tenant, and
// the tasks for one worker are sent in one packet. Only the thread that began it uses it. This
// thread does not block, and makes no other call to the engine for this tenant. Methods of an
// OperationHandle that take a batch get this one.
class SubmitBatch {
 public:
  virtual ~SubmitBatch() = default;
  // As OperationService::Submit, for an operation that a batch accepts.
  virtual absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(
      const std::string& session, const ops::OperationView& operation, SteadyTime deadline) = 0;
  // As OperationService::Refuse.
  virtual void Refuse(const std::string& session, const ops::OperationView& operation,
                      const absl::Status& status) = 0;
  // As OperationService::Release.
  virtual absl::Status Release(const std::string& session, const v1::Release& release) = 0;
};

}  // namespace stride::engine
