#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// How workers and compilers are confined. The daemon decides how strictly; a device kind knows
// which files and system calls it needs, and its executable puts itself into the sandbox before it
// reads anything of ours (server/worker/runtime/sandbox.h).
struct SandboxPolicy {
  enum class Mode {
    kOff,      // for debuggers and sanitizers
    kTry,      // what the kernel gives; the system call filter in any case
    kRequire,  // an executable that cannot have every layer is not used
  };
  Mode mode = Mode::kTry;
  // Of one compilation.
  uint64_t compile_memory_bytes = uint64_t{2} << 30;
  absl::Duration compile_processor_time = absl::Seconds(90);
};

// Flags for a worker executable, after those of its mode.
std::vector<std::string> SandboxArguments(const SandboxPolicy& policy);
// The same, with the bounds of a compilation.
std::vector<std::string> CompilerSandboxArguments(const SandboxPolicy& policy);

// Whether a process's standard error is the daemon's own: a debugger or a sanitizer has more to say
// than a log takes.
bool KeepsStandardError(const SandboxPolicy& policy);

// One line for a person: which layers are on, and why others are not.
std::string DescribeSandbox(const google::protobuf::RepeatedPtrField<wire::SandboxLayer>& layers);

}  // namespace stride::broker
