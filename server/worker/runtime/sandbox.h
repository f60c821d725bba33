#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/wire/worker.pb.h"
#include "server/worker/runtime/landlock.h"
#include "server/worker/runtime/syscall_sets.h"

namespace stride::worker {

// What the daemon asks for, on the command line: --sandbox=off|try|require.
enum class SandboxMode {
  kOff,      // for debuggers and sanitizers
  kTry,      // every layer that the kernel gives; the system call filter in any case
  kRequire,  // all of them but W^X, which needs Linux 6.3
};

// What a device kind cannot do without, in one of its modes.
struct SandboxNeeds {
  LandlockPaths paths;
  SyscallSet syscalls = SyscallSet::kDriver;
  // Private writable memory. 0: not limited. (RLIMIT_AS would break CUDA, which reserves addresses
  // by the terabyte.)
  uint64_t memory_bytes = 0;
  uint64_t file_bytes = 0;  // largest file it may write: a memory file, since no other is writable
  int num_descriptors = 64;
};

// Folders of the system's shared libraries and the loader's own files; to be put into
// SandboxNeeds::paths by kinds that open libraries after their start.
std::vector<std::string> LibraryFolders();

// Puts this process, which must have one thread, into the sandbox: called first thing in main.
// Returns the layers with what became of each. Ends the process, with a line on standard error,
// where the mode's promise cannot be kept. In a build with sanitizers every layer is off.
std::vector<wire::SandboxLayer> EnterSandbox(SandboxMode mode, const SandboxNeeds& needs);

// Whether EnterSandbox has set a system call filter.
bool InSandbox();

}  // namespace stride::worker
