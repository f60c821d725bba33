#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/front/front.h"
#include "server/api/listening_socket.h"
#include "server/audit/audit_log.h"
#include "server/base/steady_time.h"
#include "server/base/unique_fd.h"
#include "server/broker/broker.h"
#include "server/durable/store.h"
#include "server/engine/engine.h"
#include "server/fd_store/fd_store.h"
#include "server/identity/identity.h"
#include "server/main/config.h"
#include "server/main/error_watch.h"
#include "server/main/usage_writer.h"
#include "server/metrics/nvml.h"
#include "server/metrics/sampler.h"

namespace stride {

// The daemon's object graph. Created and destroyed on one thread; other methods are thread-safe.
class Server {
 public:
  // Binds the sockets, finds the devices and serves. `max_descriptors` is the process's limit;
  // connections may use half of it. `passed` are listening descriptors from a service manager.
  // `FdStore` must outlive the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Config& config, size_t max_descriptors,
                                                       fd_store::FdStore* fd_store,
                                                       std::vector<NamedFd> passed);
  // Stops at once.
  ~Server();

  const std::vector<api::Address>& addresses() const { return addresses_; }

  // Whether the engine answers within this time: checks its lock and threads, not the devices.
  bool Responds(absl::Duration patience);
  // SIGHUP: reads the tenants file again and reopens the audit log.
  void Reload();
  // A connection for the daemon's own health call.
  UniqueFd Connect() { return front_->Connect(); }

  // Health turns NOT_SERVING, new work is refused, and accepted work continues until `deadline`;
  // then calls in flight end. Blocks.
  void Drain(SteadyTime deadline);
  // Call after Drain: later events belong to this process's end and are not journaled. The process
  // may exit at any moment afterwards.
  void StopRecording();

 private:
  Server() = default;
  // Opens the tenants file and the audit log.
  absl::Status OpenBooks(const Config& config);
  absl::Status Build(const Config& config, size_t max_descriptors, std::vector<NamedFd> passed);

  fd_store::FdStore* fd_store_ = nullptr;
  std::vector<std::string> kept_sockets_;  // their names at the FdStore
  // In the order of construction; each needs those above it.
  std::vector<api::Address> addresses_;
  std::unique_ptr<audit::AuditLog> audit_;
  std::unique_ptr<metrics::Nvml> nvml_;
  std::unique_ptr<broker::Broker> broker_;
  std::unique_ptr<durable::DurableStore> durable_;  // null: nothing is saved on disk
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<UsageWriter> usage_;  // null: not saved
  std::unique_ptr<identity::Identity> identity_;
  std::unique_ptr<ErrorWatch> errors_;
  std::unique_ptr<metrics::Sampler> sampler_;
  std::unique_ptr<api::Front> front_;
};

}  // namespace stride
