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
  std::string worker_directory;  // holds stride-worker-*
  std::string cache_directory;   // compiled code; empty: memory only
  // Code that was compiled with the product (precompiled_modules.h); empty: none.
  std::string precompiled_directory;
  uint64_t staging_bytes = 64 << 20;
  uint64_t staging_slot_bytes = 1 << 20;
  int num_spares = 1;  // ready workers kept for each device
  int num_compilers = 2;
  absl::Duration compile_timeout = absl::Seconds(60);
  absl::Duration start_timeout = absl::Seconds(30);
  // CPU devices to make, by their number of threads; 0: all cores. Empty: none, unless no other
  // device is found (then one with all cores).
  std::vector<int> cpu_devices;
  bool use_cuda = true;
  SandboxPolicy sandbox;
  // What workers say on their standard error, a line at a time, made printable and bounded; from
  // any thread. Unset: dropped.
  std::function<void(const std::string&)> log;
};

// Finds the device kinds (executables), starts workers and compilers, and reaps them. Thread-safe.
class Broker {
 public:
  static absl::StatusOr<std::unique_ptr<Broker>> Create(BrokerOptions options);
  virtual ~Broker() = default;

  // Fixed for the broker's life; the index into it names a device elsewhere.
  virtual const std::vector<wire::DeviceDescription>& devices() const = 0;
  // Between devices of one kind, as its executable listed them; not every pair need have one.
  virtual const std::vector<wire::Link>& links() const {
    static const std::vector<wire::Link> kNone;
    return kNone;
  }
  // Human lines on what was found and what not, for the log and `stride doctor`.
  virtual const std::vector<std::string>& notes() const = 0;

  // A fresh worker that has served no tenant: a spare when there is one (microseconds), else a new
  // process (blocks until it is ready). Keeps the number of spares up in the background.
  virtual absl::StatusOr<std::shared_ptr<Worker>> StartWorker(int device) = 0;

  virtual Compiler& compiler() = 0;

  // Ends every process. Called before destruction; afterwards StartWorker answers UNAVAILABLE.
  virtual void Shutdown() = 0;
};

}  // namespace stride::broker
