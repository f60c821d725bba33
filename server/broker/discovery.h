#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/broker/sandbox.h"
#include "server/broker/spawner.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// A device that a worker executable can serve.
struct FoundDevice {
  wire::DeviceDescription description;
  std::string executable;
  int num_threads = 0;  // CPU devices; 0: all
};

struct Discovery {
  std::vector<FoundDevice>
      devices;  // CUDA before CPU, otherwise by kind; within a kind in the worker's order
  std::vector<wire::Link> links;
  std::map<std::string, std::string> executables;  // by kind
  std::map<std::string, std::string> toolchains;   // by kind: the compile mode's toolchain
  std::vector<std::string> notes;
  // An executable ended because it could not enter the required sandbox.
  bool sandbox_refused = false;
};

// Runs each `stride-worker-<kind>` of the folder with --list, each for at most `timeout`. A failed
// one becomes a note, not an error; a folder that cannot be read is an error.
absl::StatusOr<Discovery> Discover(const std::string& worker_directory, absl::Duration timeout,
                                   const SandboxPolicy& sandbox, Spawner* spawner);

// The dependencies of a kind's compiled code: the compiler's own name, and the builds of the
// executables that compile and launch it.
std::string ToolchainOf(const Discovery& found, const std::string& kind);

// Converts the CPU worker's description of the machine to the configured devices, each with its
// number of threads (0: all of the machine's). The devices share the machine's memory, so each gets
// an equal part.
std::vector<FoundDevice> MakeCpuDevices(const FoundDevice& machine,
                                        const std::vector<int>& num_threads);

}  // namespace stride::broker
