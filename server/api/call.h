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
#include "server/base/environment.h"
#include "server/base/ids.h"

namespace stride::api {

// State shared by all services. Lives as long as the server.
struct CallEnvironment {
  const Authenticator* authenticator = nullptr;
  RpcCounters* counters = nullptr;
  audit::AuditLog* audit = nullptr;  // null: nothing is audited
  CallGate* gate = nullptr;          // null: no limit
  ByteBudget* bytes = nullptr;       // bytes of requests; null: no limit
  // Set when the daemon stops: watches end, so that they do not delay it.
  std::atomic<bool> stopping{false};
};

// The caller on a local connection: the one that called Connect, if it still authenticates.
struct LocalCaller {
  Authenticator::Again authenticate;
  std::string peer;
  std::function<bool()> gone;
};

// One RPC in flight: its caller, its deadline, and whether the client is still there. Created at
// its start, finished at its end. On one thread at a time, except cancelled(), which any thread may
// call.
class Call {
 public:
  // `method` is a literal such as "ArrayService/GetArray".
  Call(CallEnvironment& environment, grpc::ServerContext* context, const char* method);
  // A call over a local connection, which holds a place in the call gate while it exists. `caller`
  // must outlive the call.
  Call(CallEnvironment& environment, const LocalCaller* caller, SteadyTime deadline,
       const char* method);
  Call(const Call&) = delete;
  ~Call();

  // The caller's tenant; valid if status() is OK.
  const TenantId& tenant() const { return caller_.tenant; }
  // In gRPC's form.
  std::string peer() const { return context_ == nullptr ? local_->peer : context_->peer(); }
  // Authenticates the same caller again, each time it is called (Authenticator::Remember).
  Authenticator::Again RememberCaller() const {
    return environment_.authenticator->Remember(*context_);
  }
  // Why the call must not go on: authentication failed, or the tenant has too many calls in flight.
  const absl::Status& status() const { return status_; }
  // InfiniteFuture when the client set none.
  SteadyTime deadline() const { return deadline_; }
  // Whether the client has gone, cancelled, or passed its deadline. Not to be called for each
  // command of a stream: gRPC polls the call's completion queue, which wakes the thread that reads
  // there (measured: a fifth of the daemon's time in a chain of small operations).
  bool cancelled() const { return context_ == nullptr ? local_->gone() : context_->IsCancelled(); }
  bool stopping() const { return environment_.stopping.load(std::memory_order_relaxed); }

  // CANCELLED or DEADLINE_EXCEEDED, whichever ended the client's wait.
  absl::Status EndOfWait() const;

  // Sleeps for `duration`. False: the call was cancelled or the daemon stops, so it returned early.
  bool Sleep(absl::Duration duration) const;

  // The audit log's line at the end of this call, to be filled in; null without a log. Calls that
  // never use this get no line, except those without valid credentials.
  audit::Record* Audit();
  // A separate line, with tenant, identity, peer and method filled in. The log outlives every call.
  audit::Record NewAuditRecord() const;
  audit::AuditLog* audit_log() const { return environment_.audit; }

  // Waits until the tenant's uploads are within their rate. Returns an error if the wait ended
  // early.
  absl::Status AwaitUploadRate(absl::Duration delay) const;

  // Ends the call: maps the status, adds the retry trailer, counts, and writes the access line.
  // Call once.
  grpc::Status Finish(const absl::Status& status);
  // The same for calls outside of gRPC: the status in the form that clients see.
  google::rpc::Status FinishLocal(const absl::Status& status);

 private:
  void Identified(absl::StatusOr<identity::Principal> caller);
  void Count(const absl::Status& status, int shown);

  CallEnvironment& environment_;
  // Exactly one is null.
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

// UNAVAILABLE, to be retried elsewhere or later: the end of a watch when the daemon stops.
absl::Status StoppingError();

// Longest blocking wait between checks whether the client is still there.
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
constexpr absl::Duration kLongestPollInterval = absl::Seconds(1);
// How much too early a timed wait may return.
constexpr absl::Duration kClockSlack = absl::Milliseconds(2);

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Calls `wait` with increasing deadlines until it returns a result other than DEADLINE_EXCEEDED at
// its own deadline, the call is cancelled, or `deadline` passes. `wait(SteadyTime)` returns
// absl::Status or StatusOr and must be safe to repeat.
//
// The waits grow, so that work which needs some time within one wait (a download) is not restarted
// forever.
template <typename Wait>
auto WaitFor(const Call& call, SteadyTime deadline, Wait wait) -> decltype(wait(SteadyTime())) {
  absl::Duration interval = kPollInterval;
  for (;;) {
    SteadyTime slice = std::min(deadline, Now() + interval);
    auto result = wait(slice);
    // An answer before the deadline comes from the work itself, even if it is DEADLINE_EXCEEDED.
    bool waited = absl::IsDeadlineExceeded(StatusOf(result)) && Now() >= slice - kClockSlack;
    if (!waited) return result;
    if (call.cancelled() || Now() >= deadline) return call.EndOfWait();
    interval = std::min(2 * interval, kLongestPollInterval);
  }
}

}  // namespace stride::api
