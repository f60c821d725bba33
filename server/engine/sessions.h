#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/engine/core/core.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/session_service.h"

namespace stride::engine {

// The session calls of clients, on the catalogue's sessions. Thread-safe.
class Sessions : public SessionService {
 public:
  // Both must outlive it.
  Sessions(Core* core, Scheduler* scheduler) : core_(core), scheduler_(scheduler) {}

  absl::StatusOr<v1::Session> Create(const TenantId& tenant,
                                     const v1::CreateSessionRequest& request) override;
  absl::StatusOr<v1::Session> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::Session> Renew(const TenantId& tenant, const std::string& name) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ReadPrintedResponse> ReadPrinted(const TenantId& tenant,
                                                      const std::string& name) override;

 private:
  // RESOURCE_EXHAUSTED when few descriptors are free.
  absl::Status Admit(GlobalTransaction& transaction);

  Core* const core_;
  Scheduler* const scheduler_;
};

}  // namespace stride::engine
