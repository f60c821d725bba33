#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// How workers and compilers are confined. The daemon chooses how strictly. A device kind knows the
// files and system calls that it needs, and its executable enters the sandbox before it reads any
// input (server/worker/runtime/sandbox.h).
struct SandboxPolicy {
  enum class Mode {
    kOff,      // for debuggers and sanitizers
    kTry,      // the layers that the kernel supports; always the system call filter
    kRequire,  // an executable that cannot have every layer is not used
  };
  Mode mode = Mode::kTry;
  // Limits of one compilation.
  uint64_t compile_memory_bytes = uint64_t{2} << 30;
  absl::Duration compile_processor_time = absl::Seconds(90);
};

// Flags for a worker executable, to follow the flags of its mode.
std::vector<std::string> SandboxArguments(const SandboxPolicy& policy);
// The same, with the limits of a compilation.
std::vector<std::string> CompilerSandboxArguments(const SandboxPolicy& policy);

// Whether a process writes to the daemon's own standard error: the output of a debugger or a
// sanitizer exceeds what the log takes.
bool KeepsStandardError(const SandboxPolicy& policy);

// One line for people: the active layers, and why others are inactive.
std::string DescribeSandbox(const google::protobuf::RepeatedPtrField<wire::SandboxLayer>& layers);

}  // namespace stride::broker
