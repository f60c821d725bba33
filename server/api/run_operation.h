#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/call.h"
#include "server/base/steady_time.h"
#include "server/scheduler/service/operation_service.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// What a ComputeService.Run does, whatever its request came by. On one thread at a time.
class RunOperation {
 public:
  // All must outlive it.
  RunOperation(scheduler::OperationService* operations, const v1::RunRequest* request,
               v1::RunResponse* response)
      : operations_(*operations), request_(*request), response_(*response) {}

  // What can be told from the request alone.
  absl::Status Check() const;
  // Whether Submit may have to wait for something.
  bool MayWait(absl::Duration upload_delay) const {
    return upload_delay > absl::ZeroDuration() || request_.operation().has_program_call();
  }
  // Waits for the tenant's upload rate, then submits. Afterwards there may be a handle even on
  // error; its work is unwanted then.
  absl::Status Submit(Call& call, absl::Duration upload_delay);
  const std::shared_ptr<scheduler::OperationHandle>& handle() const { return handle_; }

  // Of a handle that is done: returns its error, or writes the results that need no wait into the
  // response.
  absl::Status TakeResults(bool* complete);
  // The values that only a wait can bring.
  absl::Status ReadTheRest(SteadyTime deadline);
  // The work done into the call's line of the audit log.
  void Audit(Call& call) const;

 private:
  scheduler::OperationService& operations_;
  const v1::RunRequest& request_;
  v1::RunResponse& response_;
  std::shared_ptr<scheduler::OperationHandle> handle_;
  std::vector<bool> wanted_;  // WantedInline
};

}  // namespace stride::api
