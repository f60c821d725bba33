#pragma once

#include "server/base/ids.h"
#include "server/scheduler/core.h"
#include "server/scheduler/regions.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/service/tenant_service.h"

namespace stride::scheduler {

// The usage of each tenant, from its accounts, the scheduler and the regions. Thread-safe.
class Tenants : public TenantService {
 public:
  // All must outlive it.
  Tenants(Core* core, Scheduler* scheduler, const Regions* regions)
      : core_(core), scheduler_(scheduler), regions_(regions) {}

  v1::Usage GetUsage(const TenantId& tenant) override;

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  const Regions* const regions_;
};

}  // namespace stride::scheduler
