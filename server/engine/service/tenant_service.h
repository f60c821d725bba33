#pragma once

#include "server/base/ids.h"
#include "stride/v1/tenant_service.pb.h"

namespace stride::engine {

// The usage of tenants. Thread-safe; the caller has no transaction.
class TenantService {
 public:
  virtual ~TenantService() = default;
  // The tenant's meters, and its use of each quota with the limit.
  virtual v1::Usage GetUsage(const TenantId& tenant) = 0;
};

}  // namespace stride::engine
