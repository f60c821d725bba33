#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/listener.h"
#include "server/api/rpc_counters.h"
#include "server/api/tls.h"
#include "server/audit/audit_log.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"
#include "server/identity/identity.h"
#include "server/metrics/sampler.h"

namespace stride::scheduler {
class Engine;
}

namespace stride::api {

struct FrontOptions {
  bool trust_tenant_header = false;
  // Who callers are; null: everybody is believed. Must outlive the front.
  const identity::Identity* identity = nullptr;
  // With an identity: callers of this machine without credentials are believed.
  bool trust_local = false;
  TlsFiles tls;                      // for TCP; Unix sockets are never encrypted
  audit::AuditLog* audit = nullptr;  // must outlive the front and the engine; may be null
  int max_bulk_streams =
      64;  // PutArray and FetchArray calls at once; each may hold tens of megabytes of windows
  int max_threads =
      1024;  // calls in progress, most of which hold a thread; beyond it, and for one
             // tenant beyond half of it, they are refused with RESOURCE_EXHAUSTED.
             // Beside them a quarter as many local connections, half of them a tenant's
  // Bytes that a stream may have on its way to us; 0: gRPC's own growth with what the connection
  // carries.
  int stream_window_bytes = 0;
  // In how long the first message of a call must be complete; large ones have more.
  absl::Duration message_time = absl::Minutes(1);
  ListenerLimits listener;
  int64_t max_descriptors = 0;  // of this process, for clients to see
  // Memory is shared with clients that come by a Unix socket.
  bool share_regions = false;
};

// The gRPC server: every service, and the sockets. Thread-safe.
class Front {
 public:
  // Serves at once. `engine` and `sampler` must outlive the front.
  static absl::StatusOr<std::unique_ptr<Front>> Start(const FrontOptions& options,
                                                      scheduler::Engine* engine,
                                                      metrics::Sampler* sampler,
                                                      std::vector<ListeningSocket> sockets);
  virtual ~Front() = default;

  // Health becomes NOT_SERVING; the front still accepts calls.
  virtual void BeginDrain() = 0;
  // Accepts no more connections, ends watches, lets calls in progress finish until `deadline`, then
  // cancels them. Idempotent.
  virtual void Stop(SteadyTime deadline) = 0;

  // The listening addresses.
  virtual std::vector<Address> addresses() const = 0;
  // Returns one end of an unencrypted connection that is served like any other: for the daemon's
  // own health call, which may have no client certificate.
  virtual UniqueFd Connect() = 0;
  virtual const RpcCounters& counters() const = 0;
  virtual const Listener::Stats& connections() const = 0;
};

}  // namespace stride::api
