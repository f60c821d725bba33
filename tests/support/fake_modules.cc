#include "tests/support/fake_modules.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::testing {

absl::StatusOr<v1::Module> FakeModules::Create(const TenantId& tenant,
                                               const v1::CreateModuleRequest& request, SteadyTime) {
  if (request.module().source() == "wrong") {
    return InvalidField(v1::ERROR_REASON_COMPILE_FAILED, "module.source",
                        std::string(100000, '\n'));
  }
  std::lock_guard lock(mutex_);
  v1::Module module = request.module();
  module.set_name(absl::StrCat("tenants/", tenant.value, "/modules/", request.module_id()));
  modules_[module.name()] = module;
  return module;
}

absl::StatusOr<v1::Module> FakeModules::Get(const TenantId&, const std::string& name) {
  std::lock_guard lock(mutex_);
  auto it = modules_.find(name);
  if (it == modules_.end()) return NotFound(v1::ERROR_REASON_MODULE_NOT_FOUND, "module", name);
  return it->second;
}

absl::StatusOr<v1::ListModulesResponse> FakeModules::List(const TenantId&,
                                                          const v1::ListModulesRequest&) {
  std::lock_guard lock(mutex_);
  v1::ListModulesResponse response;
  for (const auto& [name, module] : modules_) *response.add_modules() = module;
  return response;
}

absl::Status FakeModules::Delete(const TenantId&, const std::string& name) {
  std::lock_guard lock(mutex_);
  if (modules_.erase(name) == 0) return NotFound(v1::ERROR_REASON_MODULE_NOT_FOUND, "module", name);
  return absl::OkStatus();
}

}  // namespace stride::testing
