#include "server/api/run_call.h"

#include <utility>

#include "server/api/compute_service.h"
#include "server/api/request_parser.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr char kMethod[] = "ComputeService/Run";
// With more operations in flight the engine's threads do not reply themselves: each serves a
// device, and the next operation's end would wait for the reply.
constexpr int kFewRunning = 4;

}  // namespace

RunCall::RunCall(const Context& context)
    : shared_(context), operation_(context.operations, &request_, &response_) {}

void RunCall::Await(const Context& context) {
  auto call = std::make_shared<RunCall>(context);
  for (Event* event : {&call->arrived_, &call->call_ended_, &call->reply_sent_})
    context.queue->Expect(event, call);
  call->context_.AsyncNotifyWhenDone(Tag(call->call_ended_));
  context.service->RequestRun(&call->context_, &call->stream_, context.queue->queue(),
                              Tag(call->arrived_));
}

void RunCall::Arrived(bool ok) {
  if (!ok) {  // the server has shut down; no call arrived
    shared_.queue->Forget(&call_ended_);
    shared_.queue->Forget(&reply_sent_);
    return;
  }
  Await(shared_);
  call_.emplace(*shared_.environment, &context_, kMethod);
  if (!call_->status().ok()) return Refuse(call_->status());
  shared_.queue->Expect(&received_, shared_from_this());
  stream_.Read(&bytes_, Tag(received_));
}

void RunCall::Received(bool ok) {
  absl::Status status = Parse(ok);
  if (status.ok()) status = operation_.Check();
  if (!status.ok()) return Refuse(status);
  const absl::Duration delay = shared_.accounts->UploadDelay(call_->tenant());
  if (!operation_.MayWait(delay)) return Begin(delay);
  shared_.queue->waiting().Run([self = shared_from_this(), delay] { self->Begin(delay); });
}

absl::Status RunCall::Parse(bool ok) {
  if (!ok) {
    if (context_.IsCancelled()) return call_->EndOfWait();
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "", "the call has no message");
  }
  charge_ = ByteBudget::Charge(shared_.environment->bytes, call_->tenant());
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
  const std::shared_ptr<engine::OperationHandle> handle = operation_.handle();
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok() && gone_) status = call_->EndOfWait();
    state_ = status.ok() ? State::kRunning : State::kEnding;
  }
  if (!status.ok()) {
    // The call no longer waits for the operation.
    if (handle != nullptr) handle->Cancel();
    return End(status);
  }
  shared_.queue->OperationBegins();
  // A weak reference: an operation that outlives the call must not keep it.
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
  shared_.queue->OperationEnds();
  operation_.handle()->Cancel();
  End(call_->EndOfWait());
}

void RunCall::OperationEnded() {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kRunning) return;
    state_ = State::kEnding;
  }
  if (shared_.queue->OperationEnds() <= kFewRunning) return Reply();
  shared_.queue->replies().Run([self = shared_from_this()] { self->Reply(); });
}

void RunCall::Reply() {
  bool complete = false;
  absl::Status status = operation_.TakeResults(&complete);
  if (!status.ok() || complete) return End(status);
  shared_.queue->waiting().Run([self = shared_from_this()] { self->ReadTheRest(); });
}

void RunCall::ReadTheRest() { End(operation_.ReadTheRest(call_->deadline())); }

void RunCall::End(const absl::Status& status) {
  operation_.Audit(*call_);
  const absl::Status answered = status.ok() ? SerializeResponse(response_, &bytes_) : status;
  const grpc::Status shown = call_->Finish(answered);
  call_.reset();  // the call no longer counts as in flight
  if (shown.ok()) {
    stream_.WriteAndFinish(bytes_, {}, shown, Tag(reply_sent_));
  } else {
    stream_.Finish(shown, Tag(reply_sent_));
  }
}

void RunCall::ReplySent(bool) {}

}  // namespace stride::api
