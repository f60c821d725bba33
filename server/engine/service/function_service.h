#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "stride/v1/function_service.pb.h"

namespace stride::engine {

// Functions of expressions by name, `tenants/{tenant}/functions/{id}`. Thread-safe; the caller has
// no transaction. A name of another tenant is NOT_FOUND, as one that does not exist. Create and
// Delete block for the disk where functions are kept there.
class FunctionService {
 public:
  virtual ~FunctionService() = default;

  // Compiles the function. Blocks until it is compiled or `deadline`. INVALID_ARGUMENT with the
  // compiler's message for wrong text.
  virtual absl::StatusOr<v1::Function> Create(const TenantId& tenant,
                                              const v1::CreateFunctionRequest& request,
                                              SteadyTime deadline) = 0;
  virtual absl::StatusOr<v1::Function> Get(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListFunctionsResponse> List(
      const TenantId& tenant, const v1::ListFunctionsRequest& request) = 0;
  // Accepted operations that call it continue.
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;
};

}  // namespace stride::engine
