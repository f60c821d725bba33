#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/call.h"
#include "server/base/steady_time.h"
#include "server/engine/service/operation_service.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// The execution of a ComputeService.Run call, over any transport. One thread at a time.
class RunOperation {
 public:
  // All must outlive this object.
  RunOperation(engine::OperationService* operations, const v1::RunRequest* request,
               v1::RunResponse* response)
      : operations_(*operations), request_(*request), response_(*response) {}

  // Checks the request alone.
  absl::Status Check() const;
  // Returns whether Submit may have to wait.
  bool MayWait(absl::Duration upload_delay) const {
    return upload_delay > absl::ZeroDuration() || request_.operation().has_program_call();
  }
  // Waits for the tenant's upload rate, then submits. After an error a handle may still exist; its
  // work is then unwanted.
  absl::Status Submit(Call& call, absl::Duration upload_delay);
  const std::shared_ptr<engine::OperationHandle>& handle() const { return handle_; }

  // For a handle that is done: returns its error, or writes the results that need no wait into the
  // response.
  absl::Status TakeResults(bool* complete);
  // Reads the values that require a wait.
  absl::Status ReadTheRest(SteadyTime deadline);
  // Adds the work to the call's line of the audit log.
  void Audit(Call& call) const;

 private:
  engine::OperationService& operations_;
  const v1::RunRequest& request_;
  v1::RunResponse& response_;
  std::shared_ptr<engine::OperationHandle> handle_;
  std::vector<bool> wanted_;  // WantedInline
};

}  // namespace stride::api
