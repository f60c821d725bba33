#include "server/worker/cpu/fault_handler.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <string_view>

#include "absl/status/status.h"
#include "cpucuda/cpucuda.h"
#include "server/worker/runtime/fault_report.h"

namespace stride::cpu {
namespace {

using worker::SignalSafeText;

constexpr size_t kSignalStackBytes = 64 << 10;
constexpr size_t kPage = 4096;
constexpr int kMaxOperands = 64;
constexpr size_t kMaxLabel = 200;  // in whole words
// An address farther away than this is unrelated to the operand (see the arenas' guards).
constexpr uint64_t kReach = uint64_t{8} << 30;

// The current work of the process: written before the task's code starts, and read by a handler on
// a thread that runs that code. That code may write anywhere, so the handler follows no pointer and
// uses only values from here that pass the check.
struct Scope {
  uint64_t sequence = 0;
  uint64_t num_operands = 0;
  uint64_t operands[kMaxOperands] = {};  // addresses; 0: no array
  uint64_t label_words = 0;
  bool is_kernel = false;  // `label` is the kernel's name
  char label[kMaxLabel] = {};

  uint64_t Check() const {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    uint64_t sum = kOdd ^ sequence ^ uint64_t { is_kernel } << 63;
    auto add = [&](uint64_t word) { sum = (sum ^ word) * kOdd; };
    add(num_operands);
    add(label_words);
    for (uint64_t i = 0; i < std::min<uint64_t>(num_operands, kMaxOperands); ++i) add(operands[i]);
    for (uint64_t i = 0; i < std::min<uint64_t>(label_words, kMaxLabel / 8); ++i) {
      uint64_t word;
      std::memcpy(&word, label + 8 * i, 8);
      add(word ^ word >> 29);
    }
    return sum ^ sum >> 32;
  }
};
Scope scope;
uint64_t scope_check = Scope().Check();

// The scope if its check is intact, else an empty one. On the signal stack.
Scope ScopeAsSet() {
  const Scope copy = scope;
  return copy.Check() == scope_check ? copy : Scope();
}

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

void AppendWho(const Scope& scope, SignalSafeText& text) {
  const cpucuda::RunningBlock block = cpucuda::CurrentBlock();
  if (scope.label[0] != 0) text << (scope.is_kernel ? " by kernel " : " by ") << scope.label;
  if (!block.intact() || block.in_kernel == 0) return;
  text << (scope.label[0] != 0 ? ", block (" : " by a kernel, block (")
       << uint64_t{block.block_index.x} << ", " << uint64_t{block.block_index.y} << ", "
       << uint64_t{block.block_index.z} << ")";
}

// The address itself would reveal the process's layout to a client: report the nearest array
// instead.
void AppendWhere(const Scope& scope, uint64_t address, SignalSafeText& text) {
  int nearest = -1;
  uint64_t least = kReach;
  for (int i = 0; i < static_cast<int>(scope.num_operands); ++i) {
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

// Another thread that is already reporting ends the process. If the flag was overwritten by a
// kernel, no thread ends it, and this one reports after a wait.
void OneReportOnly() {
  static std::atomic_flag reported = ATOMIC_FLAG_INIT;
  if (!reported.test_and_set()) return;
  constexpr timespec kPatience{.tv_sec = 1, .tv_nsec = 0};
  nanosleep(&kPatience, nullptr);
}

void OnFault(int signal, siginfo_t* info, void* context) {
  if (!worker::HasFaultSocket()) {
    std::signal(signal, SIG_DFL);  // the instruction runs again and ends the process
    return;
  }
  OneReportOnly();
  SignalSafeText text;
  const Scope scope = ScopeAsSet();
  AppendWhat(signal, *info, text);
  AppendWho(scope, text);
  bool has_address =
      (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 && info->si_code != SI_KERNEL;
  if (has_address) {
    AppendWhere(scope, reinterpret_cast<uint64_t>(info->si_addr), text);
    text << (IsWrite(context) ? " (write)" : " (read)");
  }
  const cpucuda::RunningBlock block = cpucuda::CurrentBlock();
  const bool of_a_task = scope.sequence != 0 || block.in_kernel != 0 || !block.intact();
  auto code = of_a_task ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInternal;
  worker::ReportFaultAndExit(scope.sequence, static_cast<int>(code), text.data(), text.size());
}

}  // namespace

void ReportForbiddenCall(int call) {
  const cpucuda::RunningBlock block = cpucuda::CurrentBlock();
  if ((block.intact() && block.in_kernel == 0) || !worker::HasFaultSocket()) return;
  OneReportOnly();
  SignalSafeText text;
  const Scope scope = ScopeAsSet();
  text << "a system call (" << static_cast<uint64_t>(call) << "), which kernels may not make,";
  AppendWho(scope, text);
  worker::ReportFaultAndExit(scope.sequence,
                             static_cast<int>(absl::StatusCode::kFailedPrecondition), text.data(),
                             text.size());
}

void UseSignalStack() {
  // Guard pages on both sides keep the stack apart from other memory.
  void* memory = mmap(nullptr, kSignalStackBytes + 2 * kPage, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;  // a stack overflow then ends the process without a report
  stack_t stack{};
  stack.ss_sp = static_cast<std::byte*>(memory) + kPage;
  stack.ss_size = kSignalStackBytes;
  if (mprotect(stack.ss_sp, stack.ss_size, PROT_READ | PROT_WRITE) != 0) return;
  sigaltstack(&stack, nullptr);
}

void InstallFaultHandler(cpucuda::ThreadPool& pool) {
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
  scope.is_kernel = !work.kernel.empty();
  const std::string_view name = scope.is_kernel ? work.kernel : std::string_view(label);
  const size_t size = std::min(name.size(), kMaxLabel - 1);
  scope.label_words = size / 8 + 1;
  std::memset(scope.label + 8 * (scope.label_words - 1), 0, 8);
  std::memcpy(scope.label, name.data(), size);
  scope.num_operands = std::min<size_t>(work.operands.size(), kMaxOperands);
  for (size_t i = 0; i < scope.num_operands; ++i) scope.operands[i] = work.operands[i].bits();
  scope_check = scope.Check();
}

void EndFaultScope() {
  scope.sequence = 0;
  scope_check = scope.Check();
}

}  // namespace stride::cpu
