#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "stride/v1/kernel_service.pb.h"

namespace stride::engine {

// Modules of kernels by name, `tenants/{tenant}/modules/{id}`. Thread-safe; the caller has no
// transaction. A name of another tenant is NOT_FOUND, as one that does not exist.
class ModuleService {
 public:
  virtual ~ModuleService() = default;

  // Compiles the module. Blocks until it is compiled and loaded or `deadline`. COMPILE_FAILED with
  // the compiler's log for wrong source.
  virtual absl::StatusOr<v1::Module> Create(const TenantId& tenant,
                                            const v1::CreateModuleRequest& request,
                                            SteadyTime deadline) = 0;
  virtual absl::StatusOr<v1::Module> Get(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListModulesResponse> List(const TenantId& tenant,
                                                       const v1::ListModulesRequest& request) = 0;
  // Accepted launches of its kernels continue.
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;
};

}  // namespace stride::engine
