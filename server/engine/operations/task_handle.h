#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/operations/array_reader.h"
#include "server/engine/operations/operations.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/operation_handle.h"

namespace stride::engine {

// The handle of an operation that became one task, several, or none (a view).
class TaskHandle : public OperationHandle {
 public:
  // The pointers must outlive it.
  TaskHandle(Core* core, Scheduler* scheduler, ArrayReader* reader, TenantId tenant,
             Operations::Accepted accepted)
      : core_(core),
        scheduler_(scheduler),
        reader_(reader),
        tenant_(std::move(tenant)),
        accepted_(std::move(accepted)) {}

  absl::Status Wait(SteadyTime deadline) override;
  bool done() const override;
  void Cancel(SubmitBatch* batch) override;
  void OnDone(Done callback, SubmitBatch* batch) override;
  void Describe(absl::FunctionRef<v1::Array*()> add, SubmitBatch* batch) const override;
  bool NotePending(session::PendingArrays* outputs, SubmitBatch* batch) const override;
  v1::Timeline timeline() const override;
  int64_t OutputBytes(int output) const override;
  Outcome TakeOutcome(const std::vector<bool>& wanted) override;
  absl::StatusOr<v1::InlineArray> ReadInline(int output, SteadyTime deadline) override;

 private:
  // Calls `function` with the batch's transaction, or with a new one if `batch` is null.
  template <typename Function>
  auto InTransaction(SubmitBatch* batch, Function function) const;
  void AddCallback(TenantTransaction& transaction, Done callback);
  // The tasks that have to end before the operation has ended, in order.
  std::vector<std::shared_ptr<Task>> Awaited() const;

  Core* const core_;
  Scheduler* const scheduler_;
  ArrayReader* const reader_;
  const TenantId tenant_;
  const Operations::Accepted accepted_;
};

}  // namespace stride::engine
