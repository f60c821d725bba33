#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "stride/v1/program_service.pb.h"

namespace stride::engine {

// Programs by name, `tenants/{tenant}/programs/{id}`. Thread-safe; the caller has no transaction. A
// name of another tenant is NOT_FOUND, as one that does not exist. Create and Delete block for the
// disk where programs are kept there.
class ProgramService {
 public:
  virtual ~ProgramService() = default;

  // Checks the program, and plans it when it declares its inputs. INVALID_ARGUMENT names the field
  // of the operation at fault.
  virtual absl::StatusOr<v1::CreateProgramResponse> Create(
      const TenantId& tenant, const v1::CreateProgramRequest& request) = 0;
  virtual absl::StatusOr<v1::Program> Get(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListProgramsResponse> List(const TenantId& tenant,
                                                        const v1::ListProgramsRequest& request) = 0;
  // Accepted calls of it continue.
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;
};

}  // namespace stride::engine
