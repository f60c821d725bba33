#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/api/call.h"
#include "server/scheduler/service/operation_handle.h"

namespace stride::api {

// Adds an operation that has ended to a line of the audit log.
void AddWork(const v1::Timeline& timeline, audit::Record* record);

// Gathers the operations of a stream into lines of the audit log: one for so many operations, or
// for so much time, whichever comes first. A line is written when its last operation has ended,
// perhaps after the stream. One thread at a time; null-safe where no log is kept.
class BatchAudit {
 public:
  // `call` and its log must outlive it, save that lines under way need the log alone.
  explicit BatchAudit(const Call& call) : call_(call) {}

  void Accepted(const std::shared_ptr<scheduler::OperationHandle>& handle,
                scheduler::SubmitBatch* batch = nullptr);

 private:
  class Batch;
  const Call& call_;
  std::shared_ptr<Batch> batch_;
};

}  // namespace stride::api
