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

namespace stride::engine {
class Engine;
}

namespace stride::api {

struct FrontOptions {
  bool trust_tenant_header = false;
  // Identifies callers; null: trusts every caller. Must outlive the front.
  const identity::Identity* identity = nullptr;
  // With an identity: trusts callers on this machine without credentials.
  bool trust_local = false;
  TlsFiles tls;                      // for TCP; Unix sockets are never encrypted
  audit::AuditLog* audit = nullptr;  // must outlive the front and the engine; may be null
  // Concurrent PutArray and FetchArray calls; each may hold tens of megabytes of windows.
  int max_bulk_streams = 64;
  // Calls in progress, most of which hold a thread. Calls beyond it, and beyond half of it for one
  // tenant, are RESOURCE_EXHAUSTED. A quarter as many local connections are allowed in addition,
  // half of them for one tenant.
  int max_threads = 1024;
  // Flow-control window of a stream in bytes; 0: gRPC adapts it to the connection's throughput.
  int stream_window_bytes = 0;
  // Time limit for the first message of a call; large messages have more time.
  absl::Duration message_time = absl::Minutes(1);
  ListenerLimits listener;
  int64_t max_descriptors = 0;  // limit of this process, reported to clients
};

// The gRPC server: every service, and the sockets. Thread-safe.
class Front {
 public:
  // Serves at once. `engine` and `sampler` must outlive the front.
  static absl::StatusOr<std::unique_ptr<Front>> Start(const FrontOptions& options,
                                                      engine::Engine* engine,
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
