#include "server/api/local_connections.h"

#include <sys/socket.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "server/base/random_id.h"
#include "server/base/surroundings.h"
#include "server/base/system_error.h"

namespace stride::api {
namespace {

// 160 bits, as in a region's ticket.
constexpr int kTicketBytes = 32;

}  // namespace

LocalConnections::LocalConnections(CallEnvironment* environment, const ComputeServices& services,
                                   ArrayTransfer* transfer, int max_per_tenant, int max)
    : environment_(*environment),
      services_(services),
      transfer_(transfer),
      gate_(max_per_tenant, max),
      threads_(max) {}

LocalConnections::~LocalConnections() { Stop(Now()); }

absl::StatusOr<LocalConnections::Ticket> LocalConnections::Invite(
    const Call& call, Authenticator::Again authenticate) {
  absl::MutexLock lock(&mutex_);
  DropOldTickets(Now());
  if (stopping_) return StoppingError();
  if (absl::Status status = gate_.Enter(call.tenant()); !status.ok()) return status;
  Ticket ticket{RandomId(kTicketBytes), Now() + kTicketLife};
  guests_[ticket.secret] = {call.tenant(), std::move(authenticate), call.peer(),
                            ticket.expire_time};
  return ticket;
}

absl::StatusOr<UniqueFd> LocalConnections::Redeem(std::string_view secret) {
  absl::MutexLock lock(&mutex_);
  DropOldTickets(Now());
  const auto it = guests_.find(secret);
  if (it == guests_.end() || stopping_) return absl::NotFoundError("no such ticket");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return SystemError(errno, "making a connection");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  Guest guest = std::move(it->second);
  guests_.erase(it);
  connections_.emplace_back(&environment_, services_, transfer_, guest.tenant,
                            std::move(guest.authenticate), std::move(guest.peer), std::move(ours));
  threads_.Run([this, tenant = std::move(guest.tenant),
                connection = std::prev(connections_.end())] { Serve(connection, tenant); });
  return theirs;
}

void LocalConnections::Serve(Connections::iterator connection, const TenantId& tenant) {
  connection->Serve();
  gate_.Leave(tenant);
  Connections over;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  over.splice(over.end(), connections_, connection);
}

void LocalConnections::DropOldTickets(SteadyTime now) {
  for (auto it = guests_.begin(); it != guests_.end();) {
    const bool old = it->second.expire_time <= now;
    if (old) gate_.Leave(it->second.tenant);
    it = old ? guests_.erase(it) : std::next(it);
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
}

}  // namespace stride::api
