#include "server/api/run_call.h"

#include <utility>
#include <vector>

#include "server/api/batch_audit.h"
#include "server/api/compute_service.h"
#include "server/api/inline_outputs.h"
#include "server/api/operation_limits.h"
#include "server/api/run_server.h"
#include "server/base/error.h"
#include "server/session/resource_name.h"

namespace stride::api {
namespace {

constexpr char kMethod[] = "ComputeService/Run";
// Framing and description of one result, generously.
constexpr int64_t kResultOverhead = 1024;
// With more operations under way the engine's threads do not reply themselves: each serves a
// device, and the next operation's end would wait for it.
constexpr int kFewRunning = 4;

std::vector<bool> WantedInline(const v1::Operation& operation) {
  std::vector<bool> wanted;
  for (const OutputPlace& place : OutputsOf(operation))
    wanted.push_back(place.output->inline_result());
  return wanted;
}

// Sizes are known from acceptance on, so that a result too large for its reply is refused before it
// is computed.
absl::Status CheckInlineSize(const std::vector<bool>& wanted, const scheduler::Ticket& ticket) {
  int64_t total = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) total += ticket.OutputBytes(static_cast<int>(i)) + kResultOverhead;
  }
  return total > kMaxMessageBytes ? InlineTooLarge("outputs", total) : absl::OkStatus();
}

}  // namespace

void RunCall::Await(RunServer* server) {
  auto call = std::make_shared<RunCall>(server);
  for (Event* event : {&call->arrived_, &call->call_ended_, &call->reply_sent_})
    server->Expect(event, call);
  call->context_.AsyncNotifyWhenDone(&call->call_ended_);
  server->service_->RequestRun(&call->context_, &call->request_, &call->responder_,
                               server->queue_.get(), server->queue_.get(), &call->arrived_);
}

void RunCall::Arrived(bool ok) {
  if (!ok) {  // the server has shut down: no call, nothing of it
    server_.Forget(&call_ended_);
    server_.Forget(&reply_sent_);
    return;
  }
  Await(&server_);
  call_.emplace(server_.environment_, &context_, kMethod);
  absl::Status status = call_->status();
  if (status.ok()) status = Check();
  if (!status.ok()) {
    absl::MutexLock lock(&mutex_);
    state_ = State::kEnding;
  }
  if (!status.ok()) return End(status);
  const absl::Duration delay = server_.engine_->accounts().UploadDelay(call_->tenant());
  if (delay <= absl::ZeroDuration() && !request_.operation().has_program_call())
    return Begin(delay);
  server_.waiting_.Run([self = shared_from_this(), delay] { self->Begin(delay); });
}

absl::Status RunCall::Check() const {
  if (!request_.session().empty()) {
    auto session = session::ParseSessionName(request_.session(), "session");
    if (!session.ok()) return session.status();
  }
  return PrefixField(CheckCounts(request_.operation()), "operation.");
}

void RunCall::Begin(absl::Duration upload_delay) {
  std::shared_ptr<scheduler::Ticket> ticket;
  absl::Status status = call_->AwaitUploadRate(upload_delay);
  if (status.ok()) status = Submit(&ticket);
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok() && gone_) status = call_->EndOfWait();
    state_ = status.ok() ? State::kRunning : State::kEnding;
    ticket_ = ticket;
  }
  if (!status.ok()) {
    // Nobody waits for it any more.
    if (ticket != nullptr) ticket->Cancel();
    return End(status);
  }
  server_.num_running_.fetch_add(1, std::memory_order_relaxed);
  // Not to be kept by an operation that outlives it.
  ticket->OnDone([weak = weak_from_this()](const absl::Status&) {
    if (auto self = weak.lock()) self->OperationEnded();
  });
}

absl::Status RunCall::Submit(std::shared_ptr<scheduler::Ticket>* ticket) {
  const v1::Operation& operation = request_.operation();
  call_->Audit();
  auto accepted =
      server_.engine_->Submit(call_->tenant(), request_.session(), operation, call_->deadline());
  if (!accepted.ok()) return PrefixField(accepted.status(), "operation.");
  *ticket = *std::move(accepted);
  wanted_ = WantedInline(operation);
  return PrefixField(CheckInlineSize(wanted_, **ticket), "operation.");
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
  ticket_->Cancel();
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
  // What is found out late, such as arguments that do not fit the compiled kernel, has a field too.
  absl::Status status = PrefixField(ticket_->Wait(absl::InfiniteFuture()), "operation.");
  if (!status.ok()) return End(status);
  scheduler::Ticket::Outcome outcome = ticket_->TakeOutcome(wanted_);
  bool complete = true;
  for (size_t i = 0; i < outcome.arrays.size(); ++i) {
    v1::Result* result = response_.add_results();
    *result->mutable_array() = std::move(outcome.arrays[i]);
    if (i >= wanted_.size() || !wanted_[i]) continue;
    complete = complete && outcome.values[i].has_value();
    if (outcome.values[i].has_value())
      *result->mutable_inline_array() = *std::move(outcome.values[i]);
  }
  *response_.mutable_timeline() = std::move(outcome.timeline);
  if (complete) return End(absl::OkStatus());
  server_.waiting_.Run([self = shared_from_this()] { self->ReadTheRest(); });
}

void RunCall::ReadTheRest() {
  for (int i = 0; i < response_.results_size() && i < static_cast<int>(wanted_.size()); ++i) {
    v1::Result* result = response_.mutable_results(i);
    if (!wanted_[i] || result->has_inline_array()) continue;
    auto value = ticket_->ReadInline(i, call_->deadline());
    if (!value.ok()) return End(value.status());
    *result->mutable_inline_array() = *std::move(value);
  }
  End(absl::OkStatus());
}

void RunCall::End(const absl::Status& status) {
  audit::Record* record = ticket_ == nullptr ? nullptr : call_->Audit();
  if (record != nullptr)
    AddWork(response_.has_timeline() ? response_.timeline() : ticket_->timeline(), record);
  const grpc::Status shown = call_->Finish(status);
  call_.reset();  // it is under way no longer, whatever its client does now
  if (shown.ok()) {
    responder_.Finish(response_, shown, &reply_sent_);
  } else {
    responder_.FinishWithError(shown, &reply_sent_);
  }
}

void RunCall::ReplySent(bool) {}

}  // namespace stride::api
