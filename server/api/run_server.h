#pragma once

#include <grpcpp/server_builder.h>

#include "server/api/call.h"
#include "server/api/run_call.h"
#include "server/api/run_queue.h"
#include "server/engine/service/operation_service.h"
#include "server/session/tenant_accounts.h"

namespace stride::api {

class ComputeServiceAdapter;

// Serves ComputeService.Run, with thousands of calls in flight. Calls of all other methods hold a
// thread each; these hold none. A few threads take requests from a completion queue. The engine's
// thread that ends an operation sends the reply; with many operations in flight, one of a few other
// threads does. A call occupies a thread only while it waits: for bytes from a device, for a
// tenant's upload rate, for the plan of a program.
class RunServer {
 public:
  // All arguments must outlive the server. `max_waiting`: threads for calls that wait.
  RunServer(CallEnvironment* environment, engine::OperationService* operations,
            session::TenantAccounts* accounts, ComputeServiceAdapter* service, int max_waiting)
      : queue_(max_waiting), context_{environment, operations, accounts, service, &queue_} {}

  // To be called before the server is built.
  void AddTo(grpc::ServerBuilder* builder) { queue_.AddTo(builder); }
  // To be called once the server is built.
  void Start();
  // To be called once the server has shut down, which ends every call. Waits for the last of them.
  void Stop() { queue_.Stop(); }

 private:
  RunQueue queue_;
  const RunCall::Context context_;
};

}  // namespace stride::api
