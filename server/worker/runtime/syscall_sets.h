#pragma once

#include "server/worker/runtime/seccomp_filter.h"

namespace stride::worker {

// System calls that a process may make. None of the sets allows a new program or process, another
// process's memory, signals to other processes, mounts, keys, BPF, io_uring, userfaultfd,
// performance counters, or network sockets.
enum class SyscallSet {
  // Memory, and descriptors that the process has or receives, for its existing threads. The process
  // opens nothing and starts nothing. A task's changes to a thread or the process, other than to
  // its memory, do not outlive the task.
  kSealed,
  // kSealed, and threads, new memory files, and handlers for its own signals.
  kCompiler,
  // kCompiler, and files by path, restricted by Landlock.
  kFiles,
  // kFiles, and calls of a device driver: ioctl, local and netlink sockets, NUMA.
  kDriver,
};

// Calls outside the set get the action `otherwise`.
SeccompFilter MakeFilter(SyscallSet set, uint32_t otherwise);

}  // namespace stride::worker
