#include "server/worker/cpu/fault_handler.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>

#include "absl/status/status.h"
#include "server/worker/cpu/kernel/fault.h"
#include "server/worker/runtime/fault_report.h"

namespace stride::cpu {
namespace {

using worker::SignalSafeText;

constexpr size_t kSignalStackBytes = 64 << 10;
constexpr int kMaxOperands = 64;
constexpr size_t kMaxLabel = 200;
// Beyond this an address has nothing to do with an operand any more (see the arenas' guards).
constexpr uint64_t kReach = uint64_t{8} << 30;

// Plain fields: written before the task's code starts, read by a handler on a thread that runs that
// code.
struct Scope {
  uint64_t sequence = 0;
  char label[kMaxLabel] = {};
  int num_operands = 0;
  uint64_t operands[kMaxOperands] = {};  // addresses; 0: no array
};
Scope scope;

void AppendWhat(int signal, const siginfo_t& info, SignalSafeText& text) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
      text << "illegal memory access";
      return;
    case SIGFPE:
      text << (info.si_code == FPE_INTDIV ? "integer division by zero"
                                          : "illegal arithmetic operation");
      return;
    case SIGABRT:
      text << "failed assertion";
      return;
    default:
      text << "illegal instruction";
  }
}

void AppendWho(SignalSafeText& text) {
  const RunningBlock& block = CurrentBlock();
  if (block.kernel != nullptr) {
    text << " by kernel " << block.kernel << ", block (" << uint64_t{block.block_index.x} << ", "
         << uint64_t{block.block_index.y} << ", " << uint64_t{block.block_index.z} << ")";
  } else if (scope.label[0] != 0) {
    text << " by " << scope.label;
  }
}

// The address itself would tell a client about this process: it is told by the array that it was
// meant for, the nearest.
void AppendWhere(uint64_t address, SignalSafeText& text) {
  int nearest = -1;
  uint64_t least = kReach;
  for (int i = 0; i < scope.num_operands; ++i) {
    uint64_t start = scope.operands[i];
    uint64_t distance = address > start ? address - start : start - address;
    if (start != 0 && distance < least) {
      least = distance;
      nearest = i;
    }
  }
  if (address < 4096) {
    text << ": through a null pointer";
  } else if (nearest < 0) {
    text << ": far from every array that it was given";
  } else if (address >= scope.operands[nearest]) {
    text << ": at byte " << least << " of array argument " << static_cast<uint64_t>(nearest);
  } else {
    text << ": " << least << " bytes before array argument " << static_cast<uint64_t>(nearest);
  }
}

bool IsWrite(const void* context) {
#if defined(__x86_64__)
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  return false;
#endif
}

void OneReportOnly() {
  static std::atomic_flag reported = ATOMIC_FLAG_INIT;
  if (reported.test_and_set()) {  // another thread is reporting; its report ends the process
    for (;;) pause();
  }
}

void OnFault(int signal, siginfo_t* info, void* context) {
  if (!worker::HasFaultSocket()) {
    std::signal(signal, SIG_DFL);  // the instruction runs again, to its end
    return;
  }
  OneReportOnly();
  SignalSafeText text;
  AppendWhat(signal, *info, text);
  AppendWho(text);
  bool has_address =
      (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 && info->si_code != SI_KERNEL;
  if (has_address) {
    AppendWhere(reinterpret_cast<uint64_t>(info->si_addr), text);
    text << (IsWrite(context) ? " (write)" : " (read)");
  }
  auto code =
      scope.sequence != 0 ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInternal;
  worker::ReportFaultAndExit(scope.sequence, static_cast<int>(code), text.data(), text.size());
}

}  // namespace

void ReportForbiddenCall(int call) {
  if (CurrentBlock().kernel == nullptr || !worker::HasFaultSocket()) return;
  OneReportOnly();
  SignalSafeText text;
  text << "a system call (" << static_cast<uint64_t>(call) << "), which kernels may not make,";
  AppendWho(text);
  worker::ReportFaultAndExit(scope.sequence,
                             static_cast<int>(absl::StatusCode::kFailedPrecondition), text.data(),
                             text.size());
}

void UseSignalStack() {
  void* memory =
      mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;  // then a stack overflow ends the process without a report
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
}

void InstallFaultHandler(ThreadPool& pool) {
  // Each thread takes one item, since none is done before all have begun.
  std::atomic<int> arrived{0};
  pool.ParallelFor(pool.num_threads(), 1, [&](int64_t, int64_t, int) {
    UseSignalStack();
    ++arrived;
    while (arrived < pool.num_threads()) usleep(10);
  });
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

void BeginFaultScope(uint64_t sequence, const std::string& label, const Work& work) {
  scope.sequence = sequence;
  size_t size = std::min(label.size(), kMaxLabel - 1);
  std::memcpy(scope.label, label.data(), size);
  scope.label[size] = 0;
  scope.num_operands = std::min<int>(static_cast<int>(work.operands.size()), kMaxOperands);
  for (int i = 0; i < scope.num_operands; ++i) scope.operands[i] = work.operands[i].bits();
}

void EndFaultScope() { scope.sequence = 0; }

}  // namespace stride::cpu
