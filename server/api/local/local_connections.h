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
#include "server/api/local/local_connection.h"
#include "server/api/local/pins.h"
#include "server/base/executor.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"

namespace stride::api {

// The local connections of all clients, their one-time tickets, and the memory that they pin. Each
// connection has a thread; their number is bounded per tenant and in total. Thread-safe.
class LocalConnections {
 public:
  static constexpr absl::Duration kTicketLife = absl::Seconds(30);

  struct Ticket {
    std::string secret;
    SteadyTime expire_time;
  };

  // The pointers must outlive this object. A ticket already reserves its connection's place.
  LocalConnections(CallEnvironment* environment, const ComputeServices& services,
                   engine::RegionService* regions, ArrayTransfer* transfer, int max_per_tenant,
                   int max);
  ~LocalConnections();

  // RESOURCE_EXHAUSTED at the limit of the caller's tenant or of all; UNAVAILABLE when the daemon
  // stops.
  absl::StatusOr<Ticket> IssueToken(const Call& call, Authenticator::Again authenticate);
  // Serves the connection from now on, for the caller that the ticket was issued to. Each ticket
  // works once; false: it is not valid. Does not block.
  bool Admit(std::string_view secret, UniqueFd socket);

  Pins& pins() { return pins_; }

  // Ends connections when their calls end, at `deadline` at the latest, and waits for that. Memory
  // is no longer released.
  void Stop(SteadyTime deadline);

 private:
  struct PendingPeer {
    TenantId tenant;
    Authenticator::Again authenticate;
    std::string peer;
    SteadyTime expire_time;
  };
  using Connections = std::list<LocalConnection>;

  void DropOldTickets(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(Connections::iterator connection, const TenantId& tenant);

  CallEnvironment& environment_;
  Pins pins_;
  const LocalConnection::Services services_;
  CallGate gate_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, PendingPeer, std::less<>> pending_peers_
      ABSL_GUARDED_BY(mutex_);  // by secret
  Connections connections_ ABSL_GUARDED_BY(mutex_);
  Executor threads_;  // as many threads as connections allowed
};

}  // namespace stride::api
