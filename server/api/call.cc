#include "server/api/call.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/api/grpc_time.h"
#include "server/api/log.h"
#include "server/api/status.h"
#include "server/base/environment.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr char kRetryPushback[] = "grpc-retry-pushback-ms";

SteadyTime DeadlineOf(const grpc::ServerContext& context) {
  return FromGrpcTime(context.raw_deadline());
}

std::string AccessLine(const char* method, const TenantId& tenant, const std::string& peer,
                       const absl::Status& status, absl::Duration elapsed) {
  return absl::StrCat("rpc method=", method, " tenant=", tenant.value.empty() ? "-" : tenant.value,
                      " peer=", peer, " code=", absl::StatusCodeToString(status.code()),
                      " micros=", absl::ToInt64Microseconds(elapsed));
}

}  // namespace

Call::Call(CallEnvironment& environment, grpc::ServerContext* context, const char* method)
    : environment_(environment),
      context_(context),
      method_(method),
      start_(Now()),
      deadline_(DeadlineOf(*context)) {
  environment_.counters->Started(method_);
  Identified(environment_.authenticator->Authenticate(*context_));
  if (status_.ok() && environment_.gate != nullptr) {
    status_ = environment_.gate->Enter(caller_.tenant);
    entered_ = status_.ok();
  }
}

void Call::Identified(absl::StatusOr<identity::Principal> caller) {
  status_ = caller.status();
  if (caller.ok()) caller_ = *std::move(caller);
  if (ReasonOf(status_) != v1::ERROR_REASON_UNAUTHENTICATED) return;
  environment_.counters->AuthenticationFailed();
  // Failures beyond an address's allowance are counted, not logged one by one.
  if (absl::IsUnauthenticated(status_)) Audit();
}

Call::Call(CallEnvironment& environment, const LocalCaller* caller, SteadyTime deadline,
           const char* method)
    : environment_(environment),
      context_(nullptr),
      local_(caller),
      method_(method),
      start_(Now()),
      deadline_(deadline) {
  environment_.counters->Started(method_);
  Identified(caller->authenticate());
}

audit::Record Call::NewAuditRecord() const {
  audit::Record record;
  record.tenant = caller_.tenant.value;
  record.identity = caller_.name;
  record.peer = peer();
  record.event = method_;
  return record;
}

audit::Record* Call::Audit() {
  if (environment_.audit == nullptr) return nullptr;
  if (!audit_.has_value()) audit_ = NewAuditRecord();
  return &*audit_;
}

absl::Status Call::AwaitUploadRate(absl::Duration delay) const {
  if (delay <= absl::ZeroDuration() || Sleep(delay)) return absl::OkStatus();
  return cancelled() ? EndOfWait() : StoppingError();
}

Call::~Call() {
  if (entered_) environment_.gate->Leave(caller_.tenant);
}

absl::Status Call::EndOfWait() const {
  if (Now() >= deadline_) return absl::DeadlineExceededError("");
  return absl::CancelledError("");
}

bool Call::Sleep(absl::Duration duration) const {
  SteadyTime end = Now() + duration;
  for (;;) {
    if (cancelled() || stopping()) return false;
    absl::Duration left = end - Now();
    if (left <= absl::ZeroDuration()) return true;
    absl::SleepFor(std::min(left, kPollInterval));
  }
}

absl::Status StoppingError() {
  return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DRAINING,
                  "the daemon is stopping", absl::Seconds(1));
}

grpc::Status Call::Finish(const absl::Status& status) {
  absl::Duration retry = RetryDelayOf(status);
  if (retry >= absl::ZeroDuration()) {
    context_->AddTrailingMetadata(kRetryPushback, std::to_string(absl::ToInt64Milliseconds(retry)));
  }
  grpc::Status shown = ToGrpcStatus(status);
  Count(status, shown.error_code());
  return shown;
}

google::rpc::Status Call::FinishLocal(const absl::Status& status) {
  google::rpc::Status shown = ToRpcStatus(status);
  Count(status, shown.code());
  return shown;
}

void Call::Count(const absl::Status& status, int shown) {
  const absl::Duration elapsed = Now() - start_;
  environment_.counters->Handled(method_, shown, elapsed);
  if (audit_.has_value()) {
    audit_->outcome = absl::StatusCodeToString(static_cast<absl::StatusCode>(shown));
    audit_->reason = ReasonNameOf(status);
    environment_.audit->Write(*std::move(audit_));
    audit_.reset();
  }
  if (DebugLogged()) LogDebug(AccessLine(method_, caller_.tenant, peer(), status, elapsed));
}

}  // namespace stride::api
