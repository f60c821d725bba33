#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/wire/worker.pb.h"
#include "server/worker/runtime/landlock.h"
#include "server/worker/runtime/syscall_sets.h"

namespace stride::worker {

// The value of --sandbox=off|try|require, which the daemon passes.
enum class SandboxMode {
  kOff,      // for debuggers and sanitizers
  kTry,      // every layer that the kernel supports; always the system call filter
  kRequire,  // all layers except W^X, which needs Linux 6.3
};

// Requirements of a device kind in one of its modes.
struct SandboxNeeds {
  LandlockPaths paths;
  SyscallSet syscalls = SyscallSet::kDriver;
  // Limit of private writable memory; 0: none. (RLIMIT_AS would break CUDA, which reserves
  // terabytes of addresses.)
  uint64_t memory_bytes = 0;
  uint64_t file_bytes = 0;  // largest file it may write: a memory file, since no other is writable
  int num_descriptors = 64;
};

// Folders of the system's shared libraries, and the loader's own files: for the SandboxNeeds::paths
// of kinds that open libraries after their start.
std::vector<std::string> LibraryFolders();

// Confines this process, which must have one thread; call it first in main. Returns the layers with
// their state. Ends the process, with a line on standard error, when the mode's guarantee cannot be
// met. In a build with sanitizers every layer is off.
std::vector<wire::SandboxLayer> EnterSandbox(SandboxMode mode, const SandboxNeeds& needs);

// Whether EnterSandbox has installed a system call filter.
bool InSandbox();

}  // namespace stride::worker
