#include "server/api/batch_audit.h"

#include <mutex>
#include <string>
#include <utility>

#include "server/base/environment.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr int64_t kMaxOperations = 1000;
constexpr absl::Duration kMaxAge = absl::Seconds(10);

}  // namespace

void AddWork(const v1::Timeline& timeline, audit::Record* record) {
  ++record->num_operations;
  record->device_seconds += static_cast<double>(timeline.run().seconds()) +
                            1e-9 * static_cast<double>(timeline.run().nanos());
  if (!timeline.device().empty() && record->device.find(timeline.device()) == std::string::npos)
    record->device += (record->device.empty() ? "" : ",") + timeline.device();
}

// Written when the stream and every operation of the batch have released it.
class BatchAudit::Batch {
 public:
  Batch(audit::AuditLog* log, audit::Record record) : log_(log), record_(std::move(record)) {
    record_.outcome = "OK";
  }
  ~Batch() { log_->Write(std::move(record_)); }

  bool full() const { return num_accepted >= kMaxOperations || Now() - begin_ > kMaxAge; }
  void Ended(const engine::OperationHandle& handle, const absl::Status& status) {
    v1::Timeline timeline = handle.timeline();
    std::lock_guard lock(mutex_);
    AddWork(timeline, &record_);
    if (status.ok() || record_.outcome != "OK") return;
    record_.outcome = absl::StatusCodeToString(status.code());
    record_.reason = ReasonNameOf(status);
  }

  int64_t num_accepted = 0;  // only the stream's thread

 private:
  audit::AuditLog* const log_;
  const SteadyTime begin_ = Now();
  std::mutex mutex_;
  audit::Record record_;  // guarded by mutex_
};

void BatchAudit::Accepted(const std::shared_ptr<engine::OperationHandle>& handle,
                          engine::SubmitBatch* batch) {
  if (call_.audit_log() == nullptr) return;
  if (batch_ == nullptr || batch_->full())
    batch_ = std::make_shared<Batch>(call_.audit_log(), call_.NewAuditRecord());
  ++batch_->num_accepted;
  engine::OperationHandle& operation = *handle;
  operation.OnDone(
      [batch = batch_, handle](const absl::Status& status) { batch->Ended(*handle, status); },
      batch);
}

}  // namespace stride::api
