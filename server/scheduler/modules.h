#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/scheduler/core.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/service/module_service.h"
#include "server/wire/plan.pb.h"

namespace stride::recovery {
class ModuleRecord;
}

namespace stride::scheduler {

// Modules that clients registered, by name. Thread-safe, except where said.
class Modules : public ModuleService {
 public:
  Modules(Core* core, Scheduler* scheduler) : core_(core), scheduler_(scheduler) {}

  absl::StatusOr<v1::Module> Create(const TenantId& tenant, const v1::CreateModuleRequest& request,
                                    SteadyTime deadline) override;
  absl::StatusOr<v1::Module> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListModulesResponse> List(const TenantId& tenant,
                                               const v1::ListModulesRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;

  // Restores a module that an earlier daemon had.
  void Restore(TenantTransaction& transaction, uint64_t id, const recovery::ModuleRecord& record);

  // The code of the module of this name.
  absl::StatusOr<wire::Source> Find(TenantTransaction& transaction, const TenantId& tenant,
                                    const std::string& name) const;

 private:
  struct Entry {
    std::shared_ptr<const v1::Module> module;
    session::ControlCharge control;
    uint64_t record = 0;  // id in the journal
  };
  // The module's record for the journal; empty without a journal.
  recovery::ModuleRecord RecordOf(const TenantId& tenant, const std::string& id,
                                  const v1::Module& module) const;
  using Key = std::pair<TenantId, std::string>;

  // Waits until no other call is making a module of this name. Then reserves the name and returns
  // null, or returns the existing module (ALREADY_EXISTS unless it `may_exist`).
  absl::StatusOr<std::shared_ptr<const v1::Module>> Reserve(const Key& key, bool may_exist,
                                                            SteadyTime deadline);
  absl::StatusOr<v1::Module> Build(const TenantId& tenant, const v1::CreateModuleRequest& request,
                                   const wire::Source& source, const std::string& id,
                                   SteadyTime deadline);
  // Loads the module unless it is loaded or being loaded. Returns the worker's description of it.
  absl::StatusOr<wire::ModuleLoaded> Attributes(Lane& lane,
                                                const std::shared_ptr<broker::Worker>& worker,
                                                const broker::CompiledModule& compiled,
                                                SteadyTime deadline);
  absl::Status AddKernels(const TenantId& tenant, int device, const wire::Code& code,
                          SteadyTime deadline, v1::Module* module);

  Core* const core_;
  Scheduler* const scheduler_;
  PerPartition<std::map<Key, Entry>> modules_;
  std::set<Key> creating_;  // changes in global transactions
};

}  // namespace stride::scheduler
