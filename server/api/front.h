#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/listener.h"
#include "server/api/rpc_counters.h"
#include "server/metrics/sampler.h"
#include "server/scheduler/engine.h"

namespace stride::api {

struct FrontOptions {
  bool trust_tenant_header = false;
  int max_bulk_streams =
      64;  // PutArray and FetchArray calls at once; each may hold tens of megabytes of windows
  int max_threads = 1024;  // one for each call in progress; beyond it, and for one tenant beyond
                           // half of it, calls are refused with RESOURCE_EXHAUSTED
  ListenerLimits listener;
};

// The gRPC server: every service, and the sockets. Thread-safe.
class Front {
 public:
  // Serves at once. `engine` and `sampler` must outlive it.
  static absl::StatusOr<std::unique_ptr<Front>> Start(const FrontOptions& options,
                                                      scheduler::Engine* engine,
                                                      metrics::Sampler* sampler,
                                                      std::vector<ListeningSocket> sockets);
  virtual ~Front() = default;

  // Health turns NOT_SERVING; calls are still taken.
  virtual void BeginDrain() = 0;
  // Takes no more connections, ends watches, lets calls in progress end until `deadline`, then
  // cancels them. Idempotent.
  virtual void Stop(absl::Time deadline) = 0;

  // Where it listens.
  virtual std::vector<Address> addresses() const = 0;
  virtual const RpcCounters& counters() const = 0;
  virtual const Listener::Stats& connections() const = 0;
};

}  // namespace stride::api
