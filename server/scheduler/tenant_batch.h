#pragma once

#include <memory>
#include <string>

#include "server/base/ids.h"
#include "server/base/surroundings.h"
#include "server/scheduler/array_reader.h"
#include "server/scheduler/operations.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/service/submit_batch.h"
#include "server/tenant/transaction.h"

namespace stride::scheduler {

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
    parts_.scheduler->SendHeld(transaction_);
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
  OneMoment moment_;
};

}  // namespace stride::scheduler
