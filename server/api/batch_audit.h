#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/api/call.h"
#include "server/engine/service/operation_handle.h"

namespace stride::api {

// Adds an ended operation to a line of the audit log.
void AddWork(const v1::Timeline& timeline, audit::Record* record);

// Gathers the operations of a stream into lines of the audit log: one line per number of operations
// or per time, whichever limit comes first. A line is written when its last operation has ended,
// possibly after the stream. One thread at a time; does nothing without a log.
class BatchAudit {
 public:
  // `call` and its log must outlive this object; unfinished lines need only the log.
  explicit BatchAudit(const Call& call) : call_(call) {}

  void Accepted(const std::shared_ptr<engine::OperationHandle>& handle,
                engine::SubmitBatch* batch = nullptr);

 private:
  class Batch;
  const Call& call_;
  std::shared_ptr<Batch> batch_;
};

}  // namespace stride::api
