#include "server/worker/runtime/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

namespace stride::worker {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the sandbox knows the system calls of x86-64 and arm64"
#endif

sock_filter Load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}

sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

// Continues when equal, else skips `skip` instructions.
sock_filter UnlessEqual(uint32_t value, size_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<uint8_t>(skip));
}

}  // namespace

void SeccompFilter::Allow(int call, std::vector<Check> checks) {
  rules_.push_back({call, std::move(checks), SECCOMP_RET_ALLOW});
}

void SeccompFilter::Fail(int call, int error) {
  rules_.push_back({call, {}, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)});
}

std::vector<sock_filter> SeccompFilter::Program() const {
  std::vector<sock_filter> program = {
      Load(offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      Return(SECCOMP_RET_KILL_PROCESS),
      Load(offsetof(seccomp_data, nr)),
  };
  for (const Rule& rule : rules_) {
    size_t size = rule.checks.size() * 3 + 1;  // size after the comparison of the call's number
    if (!rule.checks.empty()) ++size;          // reload the number for the next rule
    program.push_back(UnlessEqual(static_cast<uint32_t>(rule.call), size));
    size_t left = size;
    for (const Check& check : rule.checks) {
      program.push_back(Load(offsetof(seccomp_data, args) + sizeof(uint64_t) * check.argument));
      program.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, check.mask));
      left -= 3;
      program.push_back(UnlessEqual(check.value, left - 1));
    }
    program.push_back(Return(rule.action));
    if (!rule.checks.empty()) program.push_back(Load(offsetof(seccomp_data, nr)));
  }
  program.push_back(Return(otherwise_));
  return program;
}

absl::Status SeccompFilter::Install() const {
  std::vector<sock_filter> instructions = Program();
  sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (result == 0) return absl::OkStatus();
  if (result > 0) return absl::InternalError("a thread has a filter of its own");
  return absl::ErrnoToStatus(errno, "setting a system call filter");
}

}  // namespace stride::worker
