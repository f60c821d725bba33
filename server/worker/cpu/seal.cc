#include "server/worker/cpu/seal.h"

#include <dirent.h>
#include <linux/seccomp.h>
#include <sched.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/worker/cpu/fault_handler.h"
#include "server/worker/runtime/syscall_sets.h"
#include "server/worker/runtime/trapped_calls.h"

namespace stride::cpu {
namespace {

// Whether a thread has finished the C library's start, in which all signals are blocked. True for
// ended threads.
bool HasStarted(const std::string& folder) {
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view mask = line;
    if (!absl::ConsumePrefix(&mask, "SigBlk:")) continue;
    uint64_t blocked = 0;
    return absl::SimpleHexAtoi(absl::StripAsciiWhitespace(mask), &blocked) &&
           (blocked >> (SIGSYS - 1) & 1) == 0;
  }
  return true;
}

// The sealed set lacks the calls that start a thread, and a thread that met the filter with its
// signals blocked would end the process. Every created thread runs eventually.
absl::Status AwaitStartedThreads() {
  constexpr char kThreads[] = "/proc/self/task";
  DIR* folder = opendir(kThreads);
  if (folder == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("reading ", kThreads));
  absl::Cleanup close_folder = [folder] { closedir(folder); };
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    while (!HasStarted(absl::StrCat(kThreads, "/", entry->d_name))) sched_yield();
  }
  return absl::OkStatus();
}

// When a thread's heap first shrinks, glibc opens /proc/sys/vm/overcommit_memory and caches its
// content (malloc/arena.c). A sealed thread cannot open files, so a thread triggers this before.
void ShrinkAHeap() {
  std::thread([] {
    void* blocks[4];
    for (void*& block : blocks) {
      block = std::malloc(100 << 10);
      if (block != nullptr) *static_cast<volatile char*>(block) = 0;
    }
    for (void* block : blocks) std::free(block);
  }).join();
}

}  // namespace

absl::Status Seal() {
  ShrinkAHeap();
  if (absl::Status status = AwaitStartedThreads(); !status.ok()) return status;
  worker::AnswerTrappedCalls(ReportForbiddenCall);
  return worker::MakeFilter(worker::SyscallSet::kSealed, SECCOMP_RET_TRAP).Install();
}

}  // namespace stride::cpu
