#pragma once

#include "server/base/ids.h"
#include "server/engine/core/core.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/tenant_service.h"
#include "server/engine/transfers/regions.h"

namespace stride::engine {

class Functions;
class Modules;
class Programs;

// The usage of each tenant, from its accounts, the scheduler and its resources. Thread-safe.
class Tenants : public TenantService {
 public:
  // All must outlive it, and may be constructed after it.
  Tenants(Core* core, Scheduler* scheduler, const Regions* regions, const Functions* functions,
          const Modules* modules, const Programs* programs)
      : core_(core),
        scheduler_(scheduler),
        regions_(regions),
        functions_(functions),
        modules_(modules),
        programs_(programs) {}

  v1::Usage GetUsage(const TenantId& tenant) override;

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  const Regions* const regions_;
  const Functions* const functions_;
  const Modules* const modules_;
  const Programs* const programs_;
};

}  // namespace stride::engine
