#pragma once

#include <memory>
#include <optional>

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/byte_budget.h"
#include "server/api/call.h"
#include "server/api/run_operation.h"
#include "server/api/run_queue.h"
#include "server/engine/service/operation_service.h"
#include "server/session/tenant_accounts.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

class ComputeServiceAdapter;

// One call of ComputeService.Run, from its arrival to the end of its reply. It lives as long as
// events of the completion queue are pending. Its events have this order, each on the thread that
// delivers it: Arrived (its metadata; an unknown caller ends here), Received (its message), Begin
// (a thread of the server's, or of its executor when the call must wait), OperationEnded (the
// engine's), Reply (the engine's, or the executor's), ReplySent. CallEnded comes when the client
// has its reply or is gone.
class RunCall : public std::enable_shared_from_this<RunCall> {
 public:
  // Shared by all calls; outlives them.
  struct Context {
    CallEnvironment* environment;
    engine::OperationService* operations;
    session::TenantAccounts* accounts;  // for the upload rate
    ComputeServiceAdapter* service;
    RunQueue* queue;
  };

  // Requests the next call from gRPC. `context` outlives the call.
  static void Await(const Context& context);
  explicit RunCall(const Context& context);

 private:
  class Event final : public RunEvent {
   public:
    Event(RunCall* call, void (RunCall::*handle)(bool ok)) : call_(*call), handle_(handle) {}
    void Handle(bool ok) override { (call_.*handle_)(ok); }

   private:
    RunCall& call_;
    void (RunCall::*const handle_)(bool ok);
  };
  static void* Tag(RunEvent& event) { return &event; }

  void Arrived(bool ok);
  void Received(bool ok);
  void CallEnded(bool ok);
  void ReplySent(bool ok);

  // Parses the received message into request_.
  absl::Status Parse(bool ok);
  // Submits the operation; its end is reported to OperationEnded.
  void Begin(absl::Duration upload_delay);
  void OperationEnded();
  void Reply();
  void ReadTheRest();
  // Call before the operation begins.
  void Refuse(const absl::Status& status);
  // Called once, by the thread that moved state_ to kEnding.
  void End(const absl::Status& status);

  const Context& shared_;
  grpc::ServerContext context_;
  v1::RunRequest request_;
  v1::RunResponse response_;
  grpc::ByteBuffer bytes_;  // the received request, later the response
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  ByteBudget::Charge charge_;
  RunOperation operation_;
  Event arrived_{this, &RunCall::Arrived};
  Event received_{this, &RunCall::Received};
  Event call_ended_{this, &RunCall::CallEnded};
  Event reply_sent_{this, &RunCall::ReplySent};
  std::optional<Call> call_;  // from Arrived to End

  enum class State { kBeginning, kRunning, kEnding };
  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kBeginning;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;  // the client has gone while the operation began
};

}  // namespace stride::api
