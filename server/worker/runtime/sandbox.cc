#include "server/worker/runtime/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/wire/exit_code.h"
#include "server/worker/runtime/trapped_calls.h"

namespace stride::worker {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
// sanitizer runtimes need threads, files and terabytes of their own
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Enough by measurement. Pinned staging does not count: the driver pins it by itself.
constexpr rlim_t kLockedBytes = 64 << 10;
// Threads of this process alone, in its own user namespace; otherwise the kernel counts per user.
constexpr rlim_t kMaxThreads = 4096;
constexpr int kPrSetMdwe = 65, kMdweRefuseExecGain = 1;

bool in_sandbox = false;

absl::Status Errno(const char* what) { return absl::ErrnoToStatus(errno, what); }

// Drops the capabilities that the new user namespace granted, and those that an executed program
// could gain.
absl::Status DropCapabilities() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    // Without the right to drop it, the daemon's own bound, set by an administrator, stays in
    // force.
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM)
      return Errno("bounding capabilities");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) return Errno("dropping capabilities");
  return absl::OkStatus();
}

// Removes all network interfaces, even loopback, System V memory and the host name. Ids stay
// unmapped in the user namespace: no code needs them, and the kernel checks file access by the real
// ones.
absl::Status EnterNamespaces(bool* own_user_namespace) {
  constexpr int kWanted = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  *own_user_namespace = unshare(kWanted | CLONE_NEWUSER) == 0;
  if (*own_user_namespace) return absl::OkStatus();
  int error = errno;
  // A container may forbid user namespaces to a daemon with the right to the others.
  if (unshare(kWanted) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, "unshare");
}

absl::Status SetLimit(__rlimit_resource resource, rlim_t value) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return Errno("reading a limit");
  // A lower limit cannot be raised.
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < value) value = limit.rlim_max;
  limit = {value, value};
  if (setrlimit(resource, &limit) != 0) return Errno("setting a limit");
  return absl::OkStatus();
}

absl::Status SetLimits(const SandboxNeeds& needs, bool own_user_namespace) {
  absl::Status status = SetLimit(RLIMIT_NOFILE, needs.num_descriptors);
  if (status.ok()) status = SetLimit(RLIMIT_FSIZE, needs.file_bytes);
  if (status.ok()) status = SetLimit(RLIMIT_MEMLOCK, kLockedBytes);
  if (status.ok()) status = SetLimit(RLIMIT_MSGQUEUE, 0);
  if (status.ok() && needs.memory_bytes > 0) status = SetLimit(RLIMIT_DATA, needs.memory_bytes);
  if (status.ok() && own_user_namespace) status = SetLimit(RLIMIT_NPROC, kMaxThreads);
  return status;
}

absl::Status InstallFilter(const SandboxNeeds& needs) {
  bool sealed = needs.syscalls == SyscallSet::kSealed || needs.syscalls == SyscallSet::kCompiler;
  if (sealed) AnswerTrappedCalls();
  // Libraries that try optional calls get EPERM.
  return MakeFilter(needs.syscalls, sealed ? SECCOMP_RET_TRAP : SECCOMP_RET_ERRNO | EPERM)
      .Install();
}

class Report {
 public:
  explicit Report(SandboxMode mode) : mode_(mode) {}

  void Add(const char* name, const absl::Status& status, bool is_required, bool is_mandatory) {
    wire::SandboxLayer& layer = layers_.emplace_back();
    layer.set_name(name);
    layer.set_on(status.ok());
    if (status.ok()) return;
    layer.set_reason(std::string(status.message()));
    if (!is_mandatory && !(is_required && mode_ == SandboxMode::kRequire)) return;
    std::fprintf(stderr, "stride worker: no sandbox: %s: %s\n", name, layer.reason().c_str());
    _exit(wire::kNoSandboxExit);
  }
  std::vector<wire::SandboxLayer> Take() { return std::move(layers_); }

 private:
  const SandboxMode mode_;
  std::vector<wire::SandboxLayer> layers_;
};

}  // namespace

std::vector<std::string> LibraryFolders() {
  std::vector<std::string> folders = {"/lib",           "/lib64",         "/usr/lib",
                                      "/usr/lib64",     "/usr/local/lib", "/etc/ld.so.cache",
                                      "/etc/ld.so.conf"};
  // Containers put the driver's libraries into folders of their own.
  if (const char* more = std::getenv("LD_LIBRARY_PATH")) {
    for (absl::string_view folder : absl::StrSplit(more, ':', absl::SkipEmpty())) {
      folders.emplace_back(folder);
    }
  }
  return folders;
}

std::vector<wire::SandboxLayer> EnterSandbox(SandboxMode mode, const SandboxNeeds& needs) {
  Report report(mode);
  if (mode == SandboxMode::kOff || kSanitized) {
    report.Add("sandbox",
               absl::CancelledError(kSanitized ? "a build with sanitizers" : "switched off"),
               /*is_required=*/true, /*is_mandatory=*/false);
    return report.Take();
  }
  bool own_user_namespace = false;
  report.Add("namespaces", EnterNamespaces(&own_user_namespace), true, false);
  report.Add("capabilities", DropCapabilities(), true, false);
  report.Add("limits", SetLimits(needs, own_user_namespace), true, false);
  report.Add("files", RestrictFiles(needs.paths).status(), true, false);
  report.Add("w^x",
             prctl(kPrSetMdwe, kMdweRefuseExecGain, 0, 0, 0) == 0
                 ? absl::OkStatus()
                 : Errno("the kernel does not offer it"),
             false, false);
  // Neither another worker of the same user nor a core file may read its memory. This layer comes
  // after all that read /proc/self, which belongs to root afterwards.
  report.Add("undumpable",
             prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? absl::OkStatus() : Errno("prctl"), true,
             false);
  // A change of credentials, such as the user namespace, clears it.
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The other layers are weak without this one: a system call can reach another process.
  report.Add("system calls", InstallFilter(needs), true, true);
  in_sandbox = true;
  return report.Take();
}

bool InSandbox() { return in_sandbox; }

}  // namespace stride::worker
