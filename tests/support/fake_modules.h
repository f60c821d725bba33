#pragma once

#include <map>
#include <mutex>
#include <string>

#include "server/engine/service/module_service.h"

namespace stride::testing {

// Modules as they were given; nothing is compiled. Source `wrong` fails with a log of 100,000
// lines. Thread-safe.
class FakeModules : public engine::ModuleService {
 public:
  absl::StatusOr<v1::Module> Create(const TenantId& tenant, const v1::CreateModuleRequest& request,
                                    SteadyTime deadline) override;
  absl::StatusOr<v1::Module> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListModulesResponse> List(const TenantId& tenant,
                                               const v1::ListModulesRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;

 private:
  std::mutex mutex_;
  std::map<std::string, v1::Module> modules_;  // by name, guarded by mutex_
};

}  // namespace stride::testing
