#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>

#include "absl/synchronization/notification.h"
#include "server/api/call.h"
#include "server/api/run_call.h"
#include "server/base/executor.h"
#include "server/scheduler/service/operation_service.h"
#include "server/session/tenant_accounts.h"

namespace stride::api {

class ComputeServiceAdapter;

// Serves ComputeService.Run, of which thousands may be under way: they hold no threads, as the
// calls of all other methods do. A few threads take requests from a completion queue; the engine's
// thread that sees an operation end replies, or, where many are under way, one of a few others.
// Only what has to wait has a thread for as long: for bytes from a device, for a tenant's rate of
// uploads, for a program to be planned.
class RunServer {
 public:
  // All must outlive it. `max_waiting`: threads for calls that wait.
  RunServer(CallEnvironment* environment, scheduler::OperationService* operations,
            session::TenantAccounts* accounts, ComputeServiceAdapter* service, int max_waiting);
  ~RunServer();

  // Before the server is built.
  void AddTo(grpc::ServerBuilder* builder);
  // Once it has been built.
  void Start();
  // Once it has shut down, which ends every call. Waits for the last of them.
  void Stop();

 private:
  friend class RunCall;

  void Loop();
  // The next event; false at the end.
  bool Next(void** tag, bool* ok);
  // `event` will come, or will not after all.
  void Expect(RunCall::Event* event, std::shared_ptr<RunCall> call);
  void Forget(RunCall::Event* event);
  void EventDone();

  CallEnvironment& environment_;
  scheduler::OperationService* const operations_;
  session::TenantAccounts* const accounts_;  // for the upload rate
  ComputeServiceAdapter* const service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;
  Executor waiting_;
  Executor replies_;
  std::atomic<bool> watched_{false};  // a thread looks for events without sleeping
  std::atomic<int> num_running_{0};   // operations under way
  // Events to come. Some are awaited until the server has shut down, so that it is zero once only.
  std::atomic<int64_t> num_expected_{0};
  absl::Notification all_done_;
};

}  // namespace stride::api
