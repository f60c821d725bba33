#pragma once

#include "server/scheduler/service/array_service.h"
#include "server/scheduler/service/operation_service.h"
#include "server/scheduler/service/session_service.h"
#include "server/session/tenant_accounts.h"

namespace stride::api {

// The engine's interfaces that the commands of an Execute stream use. All must outlive the streams.
struct ComputeServices {
  scheduler::SessionService* sessions;
  scheduler::ArrayService* arrays;  // for fetches
  scheduler::OperationService* operations;
  session::TenantAccounts* accounts;  // for the upload rate
};

}  // namespace stride::api
