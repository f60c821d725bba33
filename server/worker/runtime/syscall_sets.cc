#include "server/worker/runtime/syscall_sets.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace stride::worker {
namespace {

constexpr uint32_t kAll = ~0u;
constexpr uint32_t kPrSetVma = 0x53564d41;  // PR_SET_VMA: names for anonymous memory
constexpr uint32_t kAddSeals = 1033;        // F_ADD_SEALS
constexpr uint32_t kGetSeals = 1034;        // F_GET_SEALS
constexpr uint32_t kDupCloexec = 1030;      // F_DUPFD_CLOEXEC
constexpr int kClone3 = 435, kFutexWaitv = 449, kCloseRange = 436, kFaccessat2 = 439;

constexpr int kSealedCalls[] = {
    // open descriptors
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_lseek,
    SYS_fstat,
    SYS_ftruncate,
    SYS_close,
    SYS_dup,
    SYS_dup3,
    SYS_ppoll,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_sendto,
    SYS_recvfrom,
    // memory
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_membarrier,
    // waiting, and the end of the process
    SYS_futex,
    kFutexWaitv,
    SYS_exit_group,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_restart_syscall,
    // return from an installed handler
    SYS_rt_sigreturn,
    // time, and the process itself
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrusage,
    SYS_getrandom,
    SYS_getcpu,
    SYS_uname,
    SYS_sysinfo,
#if defined(__x86_64__)
    SYS_poll,
    SYS_dup2,
    SYS_pause,
    SYS_time,
#endif
};

// Calls that start and end threads, or leave thread state for the next task.
constexpr int kThreadCalls[] = {
    SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_set_tid_address, SYS_exit,
    SYS_rt_sigprocmask,  SYS_sigaltstack,
};

constexpr int kFileCalls[] = {
    SYS_openat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    kFaccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_preadv,
    SYS_pwritev,
    SYS_fcntl,
    SYS_pipe2,
    SYS_flock,
    SYS_fadvise64,
    SYS_msync,
    SYS_mincore,
    SYS_mmap,
    SYS_mprotect,
    SYS_rt_sigaction,
    SYS_rt_sigtimedwait,
    SYS_rt_sigpending,
    SYS_rt_sigsuspend,
    SYS_memfd_create,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_pselect6,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_prctl,
    SYS_getppid,
    SYS_getpgid,
    SYS_getsid,
    SYS_getgroups,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getpriority,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_sched_setaffinity,
    SYS_times,
    SYS_umask,
    SYS_capget,
    SYS_getitimer,
    SYS_setitimer,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_delete,
    kCloseRange,
#if defined(__x86_64__)
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_getdents,
    SYS_pipe,
    SYS_eventfd,
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_select,
    SYS_getrlimit,
    SYS_arch_prctl,
    SYS_getpgrp,
#endif
};

constexpr int kDriverCalls[] = {
    SYS_ioctl,          SYS_connect,       SYS_bind,      SYS_getsockname,   SYS_getpeername,
    SYS_getsockopt,     SYS_setsockopt,    SYS_shutdown,  SYS_listen,        SYS_socketpair,
    SYS_sendmmsg,       SYS_recvmmsg,      SYS_mlock,     SYS_mlock2,        SYS_munlock,
    SYS_get_mempolicy,  SYS_set_mempolicy, SYS_mbind,     SYS_move_pages,    SYS_sched_setscheduler,
    SYS_sched_setparam, SYS_setpriority,   SYS_fallocate, SYS_sched_getattr, SYS_ioprio_get,
};

// Calls that depend on their arguments; the same in each set.
void AllowChecked(SeccompFilter& filter) {
  // Only abort() sends a signal. A kernel could otherwise stop its process or leave signals
  // pending.
  filter.Allow(SYS_tgkill, {{0, kAll, static_cast<uint32_t>(getpid())}, {2, kAll, SIGABRT}});
  // Reading its own limits: the new value is null.
  filter.Allow(SYS_prlimit64, {{0, kAll, 0}, {2, kAll, 0}});
}

// Calls of every set but kSealed.
void AllowThreads(SeccompFilter& filter) {
  for (int call : kThreadCalls) filter.Allow(call);
  // Threads, no processes. The filter cannot read the flags of clone3, which are in memory, so it
  // fails and the C library falls back to clone.
  filter.Allow(SYS_clone, {{0, CLONE_THREAD, CLONE_THREAD}});
  filter.Fail(kClone3, ENOSYS);
  const auto self = static_cast<uint32_t>(getpid());
  filter.Allow(SYS_tgkill, {{0, kAll, self}});
  filter.Allow(SYS_kill, {{0, kAll, self}});
  // A compiler sets its own limit of processor time.
  filter.Allow(SYS_prlimit64, {{0, kAll, 0}, {1, kAll, RLIMIT_CPU}});
}

// Checked calls of the sealed set; kFiles allows them without checks.
void AllowSealedChecked(SeccompFilter& filter) {
  // No executable memory except from files, so that no written data can run. No shared memory
  // except from descriptors, so that the limit on private memory holds.
  filter.Allow(SYS_mmap, {{2, PROT_EXEC, 0}, {3, MAP_SHARED, 0}});
  filter.Allow(SYS_mmap, {{3, MAP_ANONYMOUS, 0}});
  filter.Allow(SYS_mprotect, {{2, PROT_EXEC, 0}});
  // Not F_SETOWN, which would send signals to other processes.
  for (uint32_t command : {static_cast<uint32_t>(F_GETFD), static_cast<uint32_t>(F_SETFD),
                           static_cast<uint32_t>(F_GETFL), kDupCloexec, kGetSeals}) {
    filter.Allow(SYS_fcntl, {{1, kAll, command}});
  }
  filter.Allow(SYS_prctl, {{0, kAll, kPrSetVma}});
}

}  // namespace

SeccompFilter MakeFilter(SyscallSet set, uint32_t otherwise) {
  SeccompFilter filter(otherwise);
  for (int call : kSealedCalls) filter.Allow(call);
  AllowChecked(filter);
  if (set == SyscallSet::kSealed || set == SyscallSet::kCompiler) {
    AllowSealedChecked(filter);
    if (set == SyscallSet::kSealed) return filter;
    AllowThreads(filter);
    for (uint32_t option : {static_cast<uint32_t>(PR_SET_NAME), static_cast<uint32_t>(PR_GET_NAME)})
      filter.Allow(SYS_prctl, {{0, kAll, option}});
    for (int call : {SYS_memfd_create, SYS_rt_sigaction, SYS_getcwd}) filter.Allow(call);
    filter.Allow(SYS_fcntl, {{1, kAll, kAddSeals}});
    return filter;
  }
  AllowThreads(filter);
  for (int call : kFileCalls) filter.Allow(call);
  if (set == SyscallSet::kFiles) {
    // Allows a second filter to follow, but no other change.
    filter.Allow(SYS_seccomp);
    return filter;
  }
  for (int call : kDriverCalls) filter.Allow(call);
  // cuInit creates links below /dev/char that exist already, and fails on any error but EEXIST
  // (seen on driver 580).
  filter.Fail(SYS_symlinkat, EEXIST);
  filter.Fail(SYS_unlinkat, ENOENT);
#if defined(__x86_64__)
  filter.Fail(SYS_symlink, EEXIST);
  filter.Fail(SYS_unlink, ENOENT);
#endif
  for (uint32_t family : {static_cast<uint32_t>(AF_UNIX), static_cast<uint32_t>(AF_NETLINK)}) {
    filter.Allow(SYS_socket, {{0, kAll, family}});
  }
  return filter;
}

}  // namespace stride::worker
