#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/steady_time.h"
#include "server/engine/service/operation_service.h"
#include "tests/support/fake_arrays.h"

namespace stride::testing {

// Knows two operations: a copy of a handle or inline array, and a fill of uint8 zeros. Tests hold
// the work back to look at what happens in between. Thread-safe.
class FakeOperations : public engine::OperationService {
 public:
  // Results become arrays of `arrays`, which must outlive this.
  explicit FakeOperations(FakeArrays* arrays);
  ~FakeOperations() override;

  // --- for tests ---
  // Operations accepted from now on stay unfinished until LetGo, which finishes all.
  void Hold();
  void LetGo();
  // Blocks until nothing is held or `deadline`. True when nothing is held.
  bool AwaitIdle(SteadyTime deadline);
  // Whether TakeOutcome returns values; if not, only ReadInline does.
  void SetReadsAtOnce(bool reads);
  // The next Submit returns this.
  void FailNextSubmit(absl::Status status);
  // The next accepted operation ends with this.
  void FailNextWork(absl::Status status);
  int num_submitted() const;
  int num_cancelled() const;
  // The tenant of each Submit, in order.
  std::vector<std::string> tenants_seen() const;

  // --- OperationService ---
  std::unique_ptr<engine::SubmitBatch> BeginSubmitBatch(const TenantId&) override {
    return nullptr;
  }
  bool MayBatch(const v1::Operation&) const override { return false; }
  absl::StatusOr<std::shared_ptr<engine::OperationHandle>> Submit(
      const TenantId& tenant, const std::string& session, const ops::OperationView& operation,
      SteadyTime deadline) override;
  void Refuse(const TenantId&, const std::string&, const ops::OperationView&,
              const absl::Status&) override {}
  absl::Status Release(const TenantId& tenant, const std::string& session,
                       const v1::Release& release) override;

 private:
  friend class FakeHandle;
  struct Callback {
    engine::OperationHandle::Done done;
    absl::Status end;
  };
  // Guarded by the mutex of the arrays. Shared with the handles.
  struct Work {
    std::shared_ptr<FakeArrays::State> arrays;
    bool held = false;
    std::optional<absl::Status> next_submit;
    std::optional<absl::Status> next_work;
    std::multimap<const engine::OperationHandle*, Callback>
        callbacks;  // callbacks of unfinished work
    std::vector<std::string> tenants;
    int submitted = 0;
    int cancelled = 0;
    bool reads_at_once = true;
  };

  const std::shared_ptr<Work> work_;
};

}  // namespace stride::testing
