#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/broker/compiler.h"
#include "server/broker/sandbox.h"
#include "server/broker/worker.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

struct BrokerOptions {
  std::string worker_directory;  // folder of stride-worker-*
  std::string cache_directory;   // compiled code; empty: memory only
  // Folder of code that was compiled with the product (precompiled_modules.h); empty: none.
  std::string precompiled_directory;
  uint64_t staging_bytes = 64 << 20;
  uint64_t staging_slot_bytes = 1 << 20;
  int num_spares = 1;  // ready workers kept for each device
  int num_compilers = 2;
  absl::Duration compile_timeout = absl::Seconds(60);
  absl::Duration start_timeout = absl::Seconds(30);
  // Number of threads of each CPU device; 0: all cores. Empty: no CPU device, unless no other
  // device is found (then one with all cores).
  std::vector<int> cpu_devices;
  bool use_cuda = true;
  SandboxPolicy sandbox;
  // Receives the workers' standard error: one line a call, printable and bounded. Called on any
  // thread. Unset: dropped.
  std::function<void(const std::string&)> log;
};

// Finds the device kinds (executables), starts workers and compilers, and reaps them. Thread-safe.
class Broker {
 public:
  static absl::StatusOr<std::unique_ptr<Broker>> Create(BrokerOptions options);
  virtual ~Broker() = default;

  // Fixed for the broker's life. Other methods take an index into it.
  virtual const std::vector<wire::DeviceDescription>& devices() const = 0;
  // Links between devices of one kind, as its executable listed them; some pairs have none.
  virtual const std::vector<wire::Link>& links() const {
    static const std::vector<wire::Link> kNone;
    return kNone;
  }
  // Lines for the log and `stride doctor`: devices found, and devices not used with the reason.
  virtual const std::vector<std::string>& notes() const = 0;

  // A new worker that has served no tenant: a spare when there is one (microseconds), else a new
  // process (blocks until it is ready). A background thread replaces used spares.
  virtual absl::StatusOr<std::shared_ptr<Worker>> StartWorker(int device) = 0;

  virtual Compiler& compiler() = 0;

  // Ends all processes. Call before destruction; afterwards StartWorker returns UNAVAILABLE.
  virtual void Shutdown() = 0;
};

}  // namespace stride::broker
