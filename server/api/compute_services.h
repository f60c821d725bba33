#pragma once

#include "server/engine/service/array_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "server/session/tenant_accounts.h"

namespace stride::api {

// The engine's interfaces that the commands of an Execute stream use. All must outlive the streams.
struct ComputeServices {
  engine::SessionService* sessions;
  engine::ArrayService* arrays;  // for fetches
  engine::OperationService* operations;
  session::TenantAccounts* accounts;  // for the upload rate and fetched bytes
};

}  // namespace stride::api
