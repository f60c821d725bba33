#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/front.h"
#include "server/api/listening_socket.h"
#include "server/audit/audit_log.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"
#include "server/broker/broker.h"
#include "server/durable/store.h"
#include "server/identity/identity.h"
#include "server/keeper/keeper.h"
#include "server/main/config.h"
#include "server/main/error_watch.h"
#include "server/main/usage_writer.h"
#include "server/metrics/nvml.h"
#include "server/metrics/sampler.h"
#include "server/scheduler/engine.h"

namespace stride {

// The daemon's object graph. Made and destroyed on one thread; the rest is thread-safe.
class Server {
 public:
  // Binds the sockets, finds the devices, serves. `max_descriptors` is the process's limit;
  // connections may take half of it.
  // `passed` are descriptors that a service manager listens on for us. The keeper outlives the
  // server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Config& config, size_t max_descriptors,
                                                       keeper::Keeper* keeper,
                                                       std::vector<NamedFd> passed);
  // Stops at once.
  ~Server();

  const std::vector<api::Address>& addresses() const { return addresses_; }

  // Whether the engine answers within this time: its lock and its threads, not the devices.
  bool Responds(absl::Duration patience);
  // What SIGHUP asks for: reads the tenants anew, opens the audit log anew.
  void Reload();
  // For the daemon's own health call.
  UniqueFd Connect() { return front_->Connect(); }

  // Health turns NOT_SERVING, new work is refused, accepted work goes on until `deadline`; then the
  // calls in progress end. Blocks.
  void Drain(SteadyTime deadline);
  // After Drain: what happens from here on is the end of this process. Afterwards it may end at any
  // moment.
  void StopRecording();

 private:
  Server() = default;
  // Whom to believe and what to write down.
  absl::Status OpenBooks(const Config& config);
  absl::Status Build(const Config& config, size_t max_descriptors, std::vector<NamedFd> passed);

  keeper::Keeper* keeper_ = nullptr;
  std::vector<std::string> kept_sockets_;  // their names at the keeper
  // In the order of making; each needs those above it.
  std::vector<api::Address> addresses_;
  std::unique_ptr<audit::AuditLog> audit_;
  std::unique_ptr<metrics::Nvml> nvml_;
  std::unique_ptr<broker::Broker> broker_;
  std::unique_ptr<durable::DurableStore> durable_;  // null: nothing is kept on disk
  std::unique_ptr<scheduler::Engine> engine_;
  std::unique_ptr<UsageWriter> usage_;  // null: also not kept
  std::unique_ptr<identity::Identity> identity_;
  std::unique_ptr<ErrorWatch> errors_;
  std::unique_ptr<metrics::Sampler> sampler_;
  std::unique_ptr<api::Front> front_;
};

}  // namespace stride
