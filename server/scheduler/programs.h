#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ops/client_function.h"
#include "server/ops/program_plan.h"
#include "server/scheduler/core.h"
#include "server/scheduler/engine.h"
#include "stride/v1/program_service.pb.h"

namespace stride::recovery {
class ProgramRecord;
}

namespace stride::scheduler {

class Functions;

// Programs that clients registered, by name, and their plans. Each tenant's are its own.
// Thread-safe, except where said.
class Programs {
 public:
  Programs(Core* core, const Functions* functions) : core_(core), functions_(functions) {}

  absl::StatusOr<v1::CreateProgramResponse> Create(const TenantId& tenant,
                                                   const v1::CreateProgramRequest& request);
  absl::StatusOr<v1::Program> Get(const TenantId& tenant, const std::string& name);
  absl::StatusOr<v1::ListProgramsResponse> List(const TenantId& tenant,
                                                const v1::ListProgramsRequest& request);
  absl::Status Delete(const TenantId& tenant, const std::string& name);

  // As an earlier daemon had it. Caller holds the lock.
  void Restore(uint64_t id, const recovery::ProgramRecord& record);

  // The program as it runs for these inputs: made once for each kind of them. `program` has its
  // handles. Caller holds the lock.
  struct Ready {
    std::shared_ptr<const v1::Program> program;
    std::shared_ptr<const ops::ProgramPlan> plan;
  };
  absl::StatusOr<Ready> Find(const TenantId& tenant, const std::string& name,
                             const std::vector<ArrayInfo>& inputs);

 private:
  using Key = std::pair<TenantId, std::string>;
  using PlanPtr = std::shared_ptr<const ops::ProgramPlan>;
  struct Entry {
    std::shared_ptr<const v1::Program> program;
    std::map<std::string, PlanPtr> plans;  // by the inputs' descriptions
    uint64_t record = 0;                   // id in the journal
  };
  absl::StatusOr<PlanPtr> PlanFor(const TenantId& tenant, const std::vector<ArrayInfo>& inputs,
                                  Entry* entry);
  void Save(const Key& key, const Entry& entry);

  Core* const core_;
  const Functions* const functions_;
  std::map<Key, Entry> programs_;  // guarded by the lock
};

}  // namespace stride::scheduler
