#pragma once

#include "server/worker/runtime/seccomp_filter.h"

namespace stride::worker {

// What a process may ask of the kernel. In none of them: a new program or process, another
// process's memory, another signal's target than itself, mounts, keys, BPF, io_uring, userfaultfd,
// performance counters, or a socket of any network.
enum class SyscallSet {
  // Memory, and descriptors that the process has or receives, for its existing threads. The process
  // opens nothing and starts nothing. Changes that a task makes to a thread or the process, other
  // than to its memory, end with the task.
  kSealed,
  // And threads, memory files of its own making, and handlers for its own signals.
  kCompiler,
  // And files, by path: Landlock tells which.
  kFiles,
  // And what a device driver needs: ioctl, local and netlink sockets, NUMA.
  kDriver,
};

// What is not in the set meets `otherwise`.
SeccompFilter MakeFilter(SyscallSet set, uint32_t otherwise);

}  // namespace stride::worker
