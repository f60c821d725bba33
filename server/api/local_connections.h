#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/call.h"
#include "server/api/call_gate.h"
#include "server/api/compute_services.h"
#include "server/api/local_connection.h"
#include "server/base/executor.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"

namespace stride::api {

// The local connections of all clients, and the tickets that are good for one. Each has a thread;
// they are bounded, of one tenant and of all. Thread-safe.
class LocalConnections {
 public:
  static constexpr absl::Duration kTicketLife = absl::Seconds(30);

  struct Ticket {
    std::string secret;
    SteadyTime expire_time;
  };

  // The pointers must outlive it. A connection has its place from its ticket on.
  LocalConnections(CallEnvironment* environment, const ComputeServices& services,
                   ArrayTransfer* transfer, int max_per_tenant, int max);
  ~LocalConnections();

  // RESOURCE_EXHAUSTED when the caller's tenant, or all, have as many as they may have; UNAVAILABLE
  // when the daemon stops.
  absl::StatusOr<Ticket> Invite(const Call& call, Authenticator::Again authenticate);
  // The client's end of a new connection, which is served from now on. Once for each ticket. Does
  // not block.
  absl::StatusOr<UniqueFd> Redeem(std::string_view secret);

  // Connections end when their calls do, at `deadline` at the latest. Waits for that.
  void Stop(SteadyTime deadline);

 private:
  struct Guest {
    TenantId tenant;
    Authenticator::Again authenticate;
    std::string peer;
    SteadyTime expire_time;
  };
  using Connections = std::list<LocalConnection>;

  void DropOldTickets(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(Connections::iterator connection, const TenantId& tenant);

  CallEnvironment& environment_;
  const ComputeServices services_;
  ArrayTransfer* const transfer_;
  CallGate gate_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Guest, std::less<>> guests_ ABSL_GUARDED_BY(mutex_);  // by secret
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  Executor threads_;  // as many as there may be connections
};

}  // namespace stride::api
