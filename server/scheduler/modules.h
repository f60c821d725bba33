#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/scheduler/core.h"
#include "server/scheduler/engine.h"
#include "server/scheduler/scheduler.h"
#include "server/wire/plan.pb.h"

namespace stride::recovery {
class ModuleRecord;
}

namespace stride::scheduler {

// Modules that clients registered, by name. Thread-safe, except where said.
class Modules {
 public:
  Modules(Core* core, Scheduler* scheduler) : core_(core), scheduler_(scheduler) {}

  absl::StatusOr<v1::Module> Create(const TenantId& tenant, const v1::CreateModuleRequest& request,
                                    absl::Time deadline);
  absl::StatusOr<v1::Module> Get(const TenantId& tenant, const std::string& name);
  absl::StatusOr<v1::ListModulesResponse> List(const TenantId& tenant,
                                               const v1::ListModulesRequest& request);
  absl::Status Delete(const TenantId& tenant, const std::string& name);

  // As an earlier daemon had it. Caller holds the lock.
  void Restore(uint64_t id, const recovery::ModuleRecord& record);

  // The code behind a name. Caller holds the lock.
  absl::StatusOr<wire::Source> Find(const TenantId& tenant, const std::string& name) const;

 private:
  absl::Status AddKernels(const TenantId& tenant, int device, const wire::Code& code,
                          absl::Time deadline, v1::Module* module);

  Core* const core_;
  Scheduler* const scheduler_;
  struct Entry {
    v1::Module module;
    uint64_t record = 0;  // id in the journal
  };
  std::map<std::pair<TenantId, std::string>, Entry> modules_;  // guarded by the lock
};

}  // namespace stride::scheduler
