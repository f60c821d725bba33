#include "server/worker/runtime/trapped_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "server/worker/runtime/protected_value.h"

namespace stride::worker {
namespace {

constinit ProtectedValue<void (*)(int)> judge_call(nullptr);

// A trapped system call: its arguments in the thread's registers, and the place of its result.
class TrappedCall {
 public:
  explicit TrappedCall(void* context)
      : registers_(static_cast<ucontext_t*>(context)->uc_mcontext) {}

#if defined(__x86_64__)
  uint64_t Argument(int index) const {
    constexpr int kWhere[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};
    return static_cast<uint64_t>(registers_.gregs[kWhere[index]]);
  }
  void Return(int64_t result) { registers_.gregs[REG_RAX] = result; }
#elif defined(__aarch64__)
  uint64_t Argument(int index) const { return registers_.regs[index]; }
  void Return(int64_t result) { registers_.regs[0] = static_cast<uint64_t>(result); }
#endif
  const char* Text(int index) const { return reinterpret_cast<const char*>(Argument(index)); }

 private:
  mcontext_t& registers_;
};

// The N of /proc/self/fd/N, with any number of ./ and / before it (see cpucuda/runtime/module.cc);
// -1: another path.
int OwnDescriptor(const char* path) {
  constexpr char kFolder[] = "/proc/self/fd/";
  constexpr size_t kLength = sizeof(kFolder) - 1;
  if (path == nullptr || std::strncmp(path, kFolder, kLength) != 0) return -1;
  path += kLength;
  while (path[0] == '/' || (path[0] == '.' && path[1] == '/')) path += path[0] == '/' ? 1 : 2;
  int number = 0;
  const char* digit = path;
  for (; *digit >= '0' && *digit <= '9' && digit - path < 6; ++digit) {
    number = number * 10 + (*digit - '0');
  }
  return digit == path || *digit != 0 ? -1 : number;
}

int64_t Result(long result) { return result < 0 ? -errno : result; }

int64_t Open(const char* path) {
  int fd = OwnDescriptor(path);
  if (fd < 0) return -EACCES;
  return Result(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

int64_t State(int folder, const char* path, void* state, bool of_descriptor) {
  int fd = of_descriptor && path != nullptr && path[0] == 0 ? folder : OwnDescriptor(path);
  if (fd < 0) return -EACCES;
  return Result(syscall(SYS_fstat, fd, state));
}

// False: the call is not one of those emulated here.
bool Answer(int call, TrappedCall& trapped) {
  switch (call) {
    case SYS_openat:
      trapped.Return(Open(trapped.Text(1)));
      return true;
    case SYS_newfstatat:
      trapped.Return(State(static_cast<int>(trapped.Argument(0)), trapped.Text(1),
                           reinterpret_cast<void*>(trapped.Argument(2)),
                           (trapped.Argument(3) & AT_EMPTY_PATH) != 0));
      return true;
#if defined(__x86_64__)
    case SYS_open:
      trapped.Return(Open(trapped.Text(0)));
      return true;
    case SYS_stat:
    case SYS_lstat:
      trapped.Return(
          State(-1, trapped.Text(0), reinterpret_cast<void*>(trapped.Argument(1)), false));
      return true;
#endif
    default:
      return false;
  }
}

void OnTrap(int, siginfo_t* info, void* context) {
  const int saved = errno;
  TrappedCall trapped(context);
  if (auto judge = judge_call.Get(); judge != nullptr) judge(info->si_syscall);
  if (!Answer(info->si_syscall, trapped)) trapped.Return(-EACCES);
  errno = saved;
}

}  // namespace

void AnswerTrappedCalls(void (*judge)(int call)) {
  judge_call.Set(judge);
  struct sigaction action = {};
  action.sa_sigaction = OnTrap;
  // SA_NODEFER: a handler of another signal may make such a call too, and a fault inside must be
  // reported.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSYS, &action, nullptr);
}

}  // namespace stride::worker
