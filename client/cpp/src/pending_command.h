// A submitted command, and its answer once it has arrived.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "stride/call_options.h"
#include "stride/result.h"
#include "stride/timeline.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::internal {

// Any number of threads may wait; the command stream finishes it once.
class PendingCommand {
 public:
  // The daemon's answer, valid as long as this object; or its error; or DEADLINE_EXCEEDED or
  // CANCELLED of this wait, which ends nothing at the daemon.
  Result<const v1::CommandResult*> Wait(const CallOptions& options,
                                        std::chrono::nanoseconds default_timeout);

  // True when it has been answered without an error; does not wait.
  bool Succeeded();

  void Finish(v1::CommandResult result);
  void Fail(Error error);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  // Changed under mutex_; the other members do not change after it is true.
  std::atomic<bool> done_ = false;
  std::optional<Error> error_;
  v1::CommandResult result_;
};

}  // namespace stride::internal
