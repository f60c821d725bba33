#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/persistence/resource_table.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/module_service.h"
#include "server/wire/plan.pb.h"

namespace stride::recovery {
class ModuleRecord;
}

namespace stride::engine {

// Modules that clients registered, by name. Thread-safe, except where said.
class Modules : public ModuleService {
 public:
  Modules(Core* core, Scheduler* scheduler);

  absl::StatusOr<v1::Module> Create(const TenantId& tenant, const v1::CreateModuleRequest& request,
                                    SteadyTime deadline) override;
  absl::StatusOr<v1::Module> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListModulesResponse> List(const TenantId& tenant,
                                               const v1::ListModulesRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;

  // Restores a module that an earlier daemon had.
  void Restore(GlobalTransaction& transaction, uint64_t id, const recovery::ModuleRecord& record);

  int64_t Count(TenantTransaction& transaction, const TenantId& tenant) const {
    return table_.Count(transaction, tenant);
  }

  // The code of the module of this name.
  absl::StatusOr<wire::Source> Find(TenantTransaction& transaction, const TenantId& tenant,
                                    const std::string& name) const;

 private:
  struct Value {
    using Message = v1::Module;
    using Record = recovery::ModuleRecord;
    std::shared_ptr<const v1::Module> message;
    int64_t Cost() const;
    bool is_kept() const { return false; }
    void WriteTo(Record* record) const;
  };
  absl::StatusOr<v1::Module> Build(const TenantId& tenant, const v1::CreateModuleRequest& request,
                                   const wire::Source& source, const std::string& id,
                                   SteadyTime deadline);
  // Loads the module unless it is loaded or being loaded. Returns the worker's description of it.
  absl::StatusOr<wire::ModuleLoaded> Attributes(DeviceQueue& queue,
                                                const std::shared_ptr<broker::Worker>& worker,
                                                const broker::CompiledModule& compiled,
                                                SteadyTime deadline);
  absl::Status AddKernels(const TenantId& tenant, int device, const wire::Code& code,
                          SteadyTime deadline, v1::Module* module);

  Core* const core_;
  Scheduler* const scheduler_;
  ResourceTable<Value> table_;
};

}  // namespace stride::engine
