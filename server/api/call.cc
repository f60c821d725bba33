#include "server/api/call.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/api/log.h"
#include "server/api/status.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr char kRetryPushback[] = "grpc-retry-pushback-ms";

absl::Time DeadlineOf(const grpc::ServerContext& context) {
  auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
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
      start_(absl::Now()),
      deadline_(DeadlineOf(*context)) {
  environment_.counters->Started(method_);
  absl::StatusOr<TenantId> tenant = environment_.authenticator->Authenticate(*context_);
  status_ = tenant.status();
  if (!tenant.ok()) return;
  tenant_ = *std::move(tenant);
  if (environment_.gate == nullptr) return;
  status_ = environment_.gate->Enter(tenant_);
  entered_ = status_.ok();
}

Call::~Call() {
  if (entered_) environment_.gate->Leave(tenant_);
}

absl::Status Call::EndOfWait() const {
  if (absl::Now() >= deadline_) return absl::DeadlineExceededError("");
  return absl::CancelledError("");
}

bool Call::Sleep(absl::Duration duration) const {
  absl::Time end = absl::Now() + duration;
  for (;;) {
    if (cancelled() || stopping()) return false;
    absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) return true;
    absl::SleepFor(std::min(left, kPollInterval));
  }
}

absl::Status StoppingError() {
  return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DRAINING,
                  "the daemon is stopping", absl::Seconds(1));
}

grpc::Status Call::Finish(const absl::Status& status) {
  absl::Duration elapsed = absl::Now() - start_;
  absl::Duration retry = RetryDelayOf(status);
  if (retry >= absl::ZeroDuration()) {
    context_->AddTrailingMetadata(kRetryPushback, std::to_string(absl::ToInt64Milliseconds(retry)));
  }
  grpc::Status shown = ToGrpcStatus(status);
  environment_.counters->Handled(method_, shown.error_code(), elapsed);
  if (DebugLogged()) LogDebug(AccessLine(method_, tenant_, context_->peer(), status, elapsed));
  return shown;
}

}  // namespace stride::api
