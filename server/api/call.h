#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "server/api/authenticator.h"
#include "server/api/byte_budget.h"
#include "server/api/call_gate.h"
#include "server/api/rpc_counters.h"
#include "server/audit/audit_log.h"
#include "server/base/ids.h"
#include "server/base/surroundings.h"

namespace stride::api {

// What every service shares. Lives as long as the server.
struct CallEnvironment {
  const Authenticator* authenticator = nullptr;
  RpcCounters* counters = nullptr;
  audit::AuditLog* audit = nullptr;  // null: nothing is audited
  CallGate* gate = nullptr;          // none: no limit
  ByteBudget* bytes = nullptr;       // of requests; none: no limit
  // Set when the daemon stops: watches end, so that they do not hold it up.
  std::atomic<bool> stopping{false};
};

// Who calls by a local connection: whoever has called Connect, if he is still known.
struct LocalCaller {
  Authenticator::Again authenticate;
  std::string peer;
  std::function<bool()> gone;
};

// One RPC in progress: who calls, until when, whether anybody still listens. Made at its start,
// finished at its end; on one thread at a time, save cancelled() which any may ask.
class Call {
 public:
  // `method` is a literal such as "ArrayService/GetArray".
  Call(CallEnvironment& environment, grpc::ServerContext* context, const char* method);
  // By a local connection, which has its place among the calls in progress for as long as it lasts.
  // `caller` must outlive the call.
  Call(CallEnvironment& environment, const LocalCaller* caller, SteadyTime deadline,
       const char* method);
  Call(const Call&) = delete;
  ~Call();

  // Who calls; look at status() first.
  const TenantId& tenant() const { return caller_.tenant; }
  // As gRPC names peers.
  std::string peer() const { return context_ == nullptr ? local_->peer : context_->peer(); }
  // Authenticates the same caller again, whenever it is asked to (Authenticator::Remember).
  Authenticator::Again RememberCaller() const {
    return environment_.authenticator->Remember(*context_);
  }
  // Why the call must not go on: authentication failed, or the tenant has too many in progress.
  const absl::Status& status() const { return status_; }
  // InfiniteFuture when the client set none.
  SteadyTime deadline() const { return deadline_; }
  // The client has gone, cancelled, or its deadline passed. Not for every command of a stream: gRPC
  // looks into the call's completion queue, which wakes the thread that reads there (measured: a
  // fifth of the daemon's time in a chain of small operations).
  bool cancelled() const { return context_ == nullptr ? local_->gone() : context_->IsCancelled(); }
  bool stopping() const { return environment_.stopping.load(std::memory_order_relaxed); }

  // CANCELLED or DEADLINE_EXCEEDED, whichever ended the wait for this client.
  absl::Status EndOfWait() const;

  // Until `duration` is over; earlier, with false, when the call is cancelled or the daemon stops.
  bool Sleep(absl::Duration duration) const;

  // The line that the audit log gets at the end of this call, to be filled in; null where no log is
  // kept. Calls that never ask get none, but for those without valid credentials.
  audit::Record* Audit();
  // A line that is written apart, with tenant, identity, peer and method filled in. The log
  // outlives every call.
  audit::Record NewAuditRecord() const;
  audit::AuditLog* audit_log() const { return environment_.audit; }

  // Waits until the tenant's uploads are within their rate. OK, or why the wait ended early.
  absl::Status AwaitUploadRate(absl::Duration delay) const;

  // The end: maps the status, adds the retry trailer, counts, and writes the access line. Once.
  grpc::Status Finish(const absl::Status& status);
  // The same, for those that answer otherwise: the status in the words that clients are shown.
  google::rpc::Status FinishLocal(const absl::Status& status);

 private:
  void Identified(absl::StatusOr<identity::Principal> caller);
  void Count(const absl::Status& status, int shown);

  CallEnvironment& environment_;
  // One of them is null.
  grpc::ServerContext* const context_;
  const LocalCaller* const local_ = nullptr;
  const char* const method_;
  const SteadyTime start_;
  const SteadyTime deadline_;
  identity::Principal caller_;
  absl::Status status_;
  std::optional<audit::Record> audit_;
  bool entered_ = false;
};

// UNAVAILABLE, to be tried again elsewhere or later: what a watch ends with when the daemon stops.
absl::Status StoppingError();

// How long a blocking wait may last before it looks whether the client is still there.
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
constexpr absl::Duration kLongestPollInterval = absl::Seconds(1);
// How much too early a timed wait may come back.
constexpr absl::Duration kClockSlack = absl::Milliseconds(2);

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Calls `wait` with ever later deadlines until it answers otherwise than by DEADLINE_EXCEEDED at
// its own deadline, the call is cancelled, or `deadline` passes. `wait(SteadyTime)` returns
// absl::Status or StatusOr and must be safe to repeat.
//
// The waits grow longer, so that work which needs a while within its wait (a download) is not begun
// anew for ever.
template <typename Wait>
auto WaitFor(const Call& call, SteadyTime deadline, Wait wait) -> decltype(wait(SteadyTime())) {
  absl::Duration interval = kPollInterval;
  for (;;) {
    SteadyTime slice = std::min(deadline, Now() + interval);
    auto result = wait(slice);
    // An answer that came early is the work's own, even when that is DEADLINE_EXCEEDED.
    bool waited = absl::IsDeadlineExceeded(StatusOf(result)) && Now() >= slice - kClockSlack;
    if (!waited) return result;
    if (call.cancelled() || Now() >= deadline) return call.EndOfWait();
    interval = std::min(2 * interval, kLongestPollInterval);
  }
}

}  // namespace stride::api
