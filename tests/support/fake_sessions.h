#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "server/engine/service/session_service.h"

namespace stride::testing {

// Has a session of any name, except `sessions/none` (NOT_FOUND) and `sessions/broken`, whose error
// has a text that no client may see. Thread-safe.
class FakeSessions : public engine::SessionService {
 public:
  // The tenant of each Create, in order.
  std::vector<std::string> tenants_seen() const;

  absl::StatusOr<v1::Session> Create(const TenantId& tenant,
                                     const v1::CreateSessionRequest& request) override;
  absl::StatusOr<v1::Session> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::Session> Renew(const TenantId& tenant, const std::string& name) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ReadPrintedResponse> ReadPrinted(const TenantId& tenant,
                                                      const std::string& name) override;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> tenants_;  // guarded by mutex_
};

}  // namespace stride::testing
