#include "server/api/local/local_connections.h"

#include <iterator>
#include <utility>

#include "server/api/local/local_listener.h"
#include "server/base/environment.h"
#include "server/base/random_id.h"

namespace stride::api {

LocalConnections::LocalConnections(CallEnvironment* environment, const ComputeServices& services,
                                   engine::RegionService* regions, ArrayTransfer* transfer,
                                   int max_per_tenant, int max)
    : environment_(*environment),
      pins_([regions](const std::string& memory, std::shared_ptr<const void> end) {
        regions->Release(memory, std::move(end));
      }),
      services_{services, regions, transfer, &pins_},
      gate_(max_per_tenant, max),
      threads_(max) {}

LocalConnections::~LocalConnections() { Stop(Now()); }

absl::StatusOr<LocalConnections::Ticket> LocalConnections::IssueToken(
    const Call& call, Authenticator::Again authenticate) {
  absl::MutexLock lock(&mutex_);
  DropOldTickets(Now());
  if (stopping_) return StoppingError();
  if (absl::Status status = gate_.Enter(call.tenant()); !status.ok()) return status;
  // Five bits a byte.
  Ticket ticket{RandomId(LocalListener::kTicketBytes), Now() + kTicketLife};
  pending_peers_[ticket.secret] = {call.tenant(), std::move(authenticate), call.peer(),
                                   ticket.expire_time};
  return ticket;
}

bool LocalConnections::Admit(std::string_view secret, UniqueFd socket) {
  absl::MutexLock lock(&mutex_);
  DropOldTickets(Now());
  const auto it = pending_peers_.find(secret);
  if (it == pending_peers_.end() || stopping_) return false;
  PendingPeer guest = std::move(it->second);
  pending_peers_.erase(it);
  connections_.emplace_back(&environment_, services_, guest.tenant, std::move(guest.authenticate),
                            std::move(guest.peer), std::move(socket));
  threads_.Run([this, tenant = std::move(guest.tenant),
                connection = std::prev(connections_.end())] { Serve(connection, tenant); });
  return true;
}

void LocalConnections::Serve(Connections::iterator connection, const TenantId& tenant) {
  connection->Serve();
  gate_.Leave(tenant);
  Connections over;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  over.splice(over.end(), connections_, connection);
}

void LocalConnections::DropOldTickets(SteadyTime now) {
  for (auto it = pending_peers_.begin(); it != pending_peers_.end();) {
    const bool old = it->second.expire_time <= now;
    if (old) gate_.Leave(it->second.tenant);
    it = old ? pending_peers_.erase(it) : std::next(it);
  }
}

void LocalConnections::Stop(SteadyTime deadline) {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (LocalConnection& connection : connections_) connection.EndSoon();
    auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return connections_.empty(); };
    const absl::Condition ended(&none);
    if (!Await(mutex_, ended, deadline)) {
      for (LocalConnection& connection : connections_) connection.End();
      mutex_.Await(ended);
    }
  }
  threads_.Stop();
  pins_.Stop();
}

}  // namespace stride::api
