#pragma once

#include <memory>
#include <string>

#include "server/base/environment.h"
#include "server/base/ids.h"
#include "server/engine/operations/array_reader.h"
#include "server/engine/operations/operations.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/submit_batch.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// A batch. All of its calls happen in the transaction of the tenant that it owns.
class TenantBatch final : public SubmitBatch {
 public:
  // All outlive it.
  struct Parts {
    Core* core;
    Scheduler* scheduler;
    Operations* operations;
    ArrayReader* reader;
  };
  TenantBatch(Parts parts, const TenantId& tenant)
      : parts_(parts), tenant_(tenant), transaction_(*parts.core, tenant) {
    transaction_.BeginBatch();
  }
  ~TenantBatch() override {
    parts_.scheduler->dispatcher().FlushBatch(transaction_);
    parts_.scheduler->Settle(transaction_);  // while moment_ saves readings of the clock
  }

  TenantTransaction& transaction() { return transaction_; }
  absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(const std::string& session,
                                                          const ops::OperationView& operation,
                                                          SteadyTime deadline) override;
  void Refuse(const std::string& session, const ops::OperationView& operation,
              const absl::Status& status) override {
    parts_.operations->Refuse(transaction_, tenant_, session, operation, status);
  }
  absl::Status Release(const std::string& session, const v1::Release& release) override {
    return parts_.operations->Release(transaction_, tenant_, session, release);
  }

 private:
  const Parts parts_;
  const TenantId tenant_;
  TenantTransaction transaction_;
  FrozenClock moment_;
};

}  // namespace stride::engine
