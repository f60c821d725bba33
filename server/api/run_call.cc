#include "server/api/run_call.h"

#include <utility>

#include "server/api/compute_service.h"
#include "server/api/request_parser.h"
#include "server/api/run_server.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr char kMethod[] = "ComputeService/Run";
// With more operations under way the engine's threads do not reply themselves: each serves a
// device, and the next operation's end would wait for it.
constexpr int kFewRunning = 4;

}  // namespace

RunCall::RunCall(RunServer* server)
    : server_(*server), operation_(server->operations_, &request_, &response_) {}

void RunCall::Await(RunServer* server) {
  auto call = std::make_shared<RunCall>(server);
  for (Event* event : {&call->arrived_, &call->call_ended_, &call->reply_sent_})
    server->Expect(event, call);
  call->context_.AsyncNotifyWhenDone(&call->call_ended_);
  server->service_->RequestRun(&call->context_, &call->stream_, server->queue_.get(),
                               &call->arrived_);
}

void RunCall::Arrived(bool ok) {
  if (!ok) {  // the server has shut down: no call, nothing of it
    server_.Forget(&call_ended_);
    server_.Forget(&reply_sent_);
    return;
  }
  Await(&server_);
  call_.emplace(server_.environment_, &context_, kMethod);
  if (!call_->status().ok()) return Refuse(call_->status());
  server_.Expect(&received_, shared_from_this());
  stream_.Read(&bytes_, &received_);
}

void RunCall::Received(bool ok) {
  absl::Status status = Parse(ok);
  if (status.ok()) status = operation_.Check();
  if (!status.ok()) return Refuse(status);
  const absl::Duration delay = server_.accounts_->UploadDelay(call_->tenant());
  if (!operation_.MayWait(delay)) return Begin(delay);
  server_.waiting_.Run([self = shared_from_this(), delay] { self->Begin(delay); });
}

absl::Status RunCall::Parse(bool ok) {
  if (!ok) {
    if (context_.IsCancelled()) return call_->EndOfWait();
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "", "the call has no message");
  }
  charge_ = ByteBudget::Charge(server_.environment_.bytes, call_->tenant());
  absl::Status status =
      ParseRequest(bytes_, ShapeOf<v1::RunRequest>(), kContentRequest, &charge_, &request_);
  bytes_.Clear();
  return status;
}

void RunCall::Refuse(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    state_ = State::kEnding;
  }
  End(status);
}

void RunCall::Begin(absl::Duration upload_delay) {
  absl::Status status = operation_.Submit(*call_, upload_delay);
  const std::shared_ptr<scheduler::OperationHandle> handle = operation_.handle();
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok() && gone_) status = call_->EndOfWait();
    state_ = status.ok() ? State::kRunning : State::kEnding;
  }
  if (!status.ok()) {
    // Nobody waits for it any more.
    if (handle != nullptr) handle->Cancel();
    return End(status);
  }
  server_.num_running_.fetch_add(1, std::memory_order_relaxed);
  // Not to be kept by an operation that outlives it.
  handle->OnDone([weak = weak_from_this()](const absl::Status&) {
    if (auto self = weak.lock()) self->OperationEnded();
  });
}

void RunCall::CallEnded(bool) {
  if (!context_.IsCancelled()) return;
  {
    absl::MutexLock lock(&mutex_);
    gone_ = true;
    if (state_ != State::kRunning) return;
    state_ = State::kEnding;
  }
  server_.num_running_.fetch_sub(1, std::memory_order_relaxed);
  operation_.handle()->Cancel();
  End(call_->EndOfWait());
}

void RunCall::OperationEnded() {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kRunning) return;
    state_ = State::kEnding;
  }
  if (server_.num_running_.fetch_sub(1, std::memory_order_relaxed) <= kFewRunning) return Reply();
  server_.replies_.Run([self = shared_from_this()] { self->Reply(); });
}

void RunCall::Reply() {
  bool complete = false;
  absl::Status status = operation_.TakeResults(&complete);
  if (!status.ok() || complete) return End(status);
  server_.waiting_.Run([self = shared_from_this()] { self->ReadTheRest(); });
}

void RunCall::ReadTheRest() { End(operation_.ReadTheRest(call_->deadline())); }

void RunCall::End(const absl::Status& status) {
  operation_.Audit(*call_);
  const absl::Status answered = status.ok() ? SerializeResponse(response_, &bytes_) : status;
  const grpc::Status shown = call_->Finish(answered);
  call_.reset();  // it is under way no longer, whatever its client does now
  if (shown.ok()) {
    stream_.WriteAndFinish(bytes_, {}, shown, &reply_sent_);
  } else {
    stream_.Finish(shown, &reply_sent_);
  }
}

void RunCall::ReplySent(bool) {}

}  // namespace stride::api
