#include "server/engine/tenants.h"

#include <algorithm>
#include <optional>

#include "server/engine/definitions/functions.h"
#include "server/engine/definitions/modules.h"
#include "server/engine/definitions/programs.h"

namespace stride::engine {

v1::Usage Tenants::GetUsage(const TenantId& tenant) {
  TenantTransaction transaction(*core_, tenant);
  scheduler_->queues().ChargeWorkers(transaction, tenant);
  v1::Usage usage = core_->accounts->Describe(tenant);
  const identity::Quota quota = core_->accounts->QuotaOf(tenant);
  auto add = [&](const char* quota_name, int64_t used, std::optional<int64_t> limit) {
    v1::QuotaUsage* line = usage.add_quotas();
    line->set_name(quota_name);
    line->set_used(used);
    if (limit.has_value()) line->set_limit(*limit);
  };
  add("operations", scheduler_->unfinished().Count(transaction, tenant), quota.operations);
  int64_t sessions =
      core_->catalogue.NumSessions(transaction, tenant) - core_->accounts->live_jobs(tenant);
  add("sessions", std::max<int64_t>(0, sessions), quota.sessions);
  add("functions", functions_->Count(transaction, tenant), quota.functions);
  add("modules", modules_->Count(transaction, tenant), quota.modules);
  add("programs", programs_->Count(transaction, tenant), quota.programs);
  add("region-bytes", regions_->bytes(tenant), quota.region_bytes);
  return usage;
}

}  // namespace stride::engine
