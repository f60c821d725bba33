#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/call.h"
#include "server/base/steady_time.h"
#include "server/scheduler/engine.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// What a ComputeService.Run does, whatever its request came by. On one thread at a time.
class RunOperation {
 public:
  // All must outlive it.
  RunOperation(scheduler::Engine* engine, const v1::RunRequest* request, v1::RunResponse* response)
      : engine_(*engine), request_(*request), response_(*response) {}

  // What can be told from the request alone.
  absl::Status Check() const;
  // Whether Submit may have to wait for something.
  bool MayWait(absl::Duration upload_delay) const {
    return upload_delay > absl::ZeroDuration() || request_.operation().has_program_call();
  }
  // Waits for the tenant's rate of uploads, and submits. From then on there is a ticket, perhaps
  // after an error too, whose work nobody wants.
  absl::Status Submit(Call& call, absl::Duration upload_delay);
  const std::shared_ptr<scheduler::OperationHandle>& ticket() const { return ticket_; }

  // Of a ticket that is done: its error, or its results into the response, all that needs no wait.
  absl::Status TakeResults(bool* complete);
  // The values that only a wait can bring.
  absl::Status ReadTheRest(SteadyTime deadline);
  // The work done into the call's line of the audit log.
  void Audit(Call& call) const;

 private:
  scheduler::Engine& engine_;
  const v1::RunRequest& request_;
  v1::RunResponse& response_;
  std::shared_ptr<scheduler::OperationHandle> ticket_;
  std::vector<bool> wanted_;  // WantedInline
};

}  // namespace stride::api
