#include "server/api/local_connections.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/random_id.h"

namespace stride::api {
namespace {

// 160 bits, as of a region's ticket.
constexpr int kTicketBytes = 32;

}  // namespace

LocalConnections::LocalConnections(CallEnvironment* environment, scheduler::Engine* engine,
                                   int max_per_tenant, int max)
    : environment_(*environment), engine_(engine), gate_(max_per_tenant, max) {}

LocalConnections::~LocalConnections() { Stop(absl::Now()); }

absl::StatusOr<LocalConnections::Ticket> LocalConnections::Invite(const Call& call) {
  Connections over;
  absl::StatusOr<Ticket> ticket = Ticket{RandomId(kTicketBytes), absl::Now() + kTicketLife};
  {
    absl::MutexLock lock(&mutex_);
    over = TakeOver();
    DropOldTickets(absl::Now());
    absl::Status status = stopping_ ? StoppingError() : gate_.Enter(call.tenant());
    if (status.ok()) {
      guests_[ticket->secret] = {call.caller(), call.peer(), ticket->expire_time};
    } else {
      ticket = status;
    }
  }
  Join(std::move(over));
  return ticket;
}

absl::StatusOr<UniqueFd> LocalConnections::Redeem(std::string_view secret) {
  absl::MutexLock lock(&mutex_);
  DropOldTickets(absl::Now());
  const auto it = guests_.find(secret);
  if (it == guests_.end() || stopping_) return absl::NotFoundError("no such ticket");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "making a connection");
  UniqueFd theirs(ends[1]);
  const TenantId tenant = it->second.caller.tenant;
  auto connection =
      std::make_unique<LocalConnection>(&environment_, engine_, std::move(it->second.caller),
                                        std::move(it->second.peer), UniqueFd(ends[0]));
  guests_.erase(it);
  Connection& served = connections_.emplace_back();
  served.tenant = tenant;
  served.connection = std::move(connection);
  try {
    served.thread = std::thread([this, &served] {
      served.connection->Serve();
      gate_.Leave(served.tenant);
      absl::MutexLock lock(&mutex_);
      served.over = true;
    });
  } catch (const std::system_error& error) {
    connections_.pop_back();
    gate_.Leave(tenant);
    return absl::ResourceExhaustedError(error.what());
  }
  return theirs;
}

void LocalConnections::DropOldTickets(absl::Time now) {
  for (auto it = guests_.begin(); it != guests_.end();) {
    const bool old = it->second.expire_time <= now;
    if (old) gate_.Leave(it->second.caller.tenant);
    it = old ? guests_.erase(it) : std::next(it);
  }
}

LocalConnections::Connections LocalConnections::TakeOver() {
  Connections over;
  for (auto it = connections_.begin(); it != connections_.end();) {
    const auto next = std::next(it);
    if (it->over) over.splice(over.end(), connections_, it);
    it = next;
  }
  return over;
}

void LocalConnections::Join(Connections connections) {
  for (Connection& connection : connections) connection.thread.join();
}

bool LocalConnections::none_serves() const {
  for (const Connection& connection : connections_) {
    if (!connection.over) return false;
  }
  return true;
}

void LocalConnections::Stop(absl::Time deadline) {
  Connections over;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const Connection& connection : connections_) connection.connection->EndSoon();
    auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return none_serves(); };
    const absl::Condition ended(&none);
    if (!mutex_.AwaitWithDeadline(ended, deadline)) {
      for (const Connection& connection : connections_) connection.connection->End();
      mutex_.Await(ended);
    }
    over.swap(connections_);
  }
  Join(std::move(over));
}

int LocalConnections::size() const {
  absl::MutexLock lock(&mutex_);
  int count = 0;
  for (const Connection& connection : connections_) count += !connection.over;
  return count;
}

}  // namespace stride::api
