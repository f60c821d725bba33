#include "server/worker/runtime/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "server/worker/runtime/trapped_calls.h"
#include "tests/support/inside_sandbox.h"

namespace stride::worker {
namespace {

SandboxNeeds Needs(SyscallSet set) {
  SandboxNeeds needs;
  needs.syscalls = set;
  return needs;
}

// Returns "" when the call failed like a forbidden one.
std::string Refused(const char* name, long result) {
  if (result < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS)) return "";
  return std::string(name) + " gave " + std::to_string(result) + ", errno " +
         std::to_string(errno) + "\n";
}

const char* Victim();

// A file that exists, created by the first caller, before any sandbox.
const char* Victim() {
  static const std::string* path = [] {
    auto* made = new std::string("/tmp/stride-sandbox-victim." + std::to_string(getpid()));
    close(open(made->c_str(), O_CREAT | O_CLOEXEC, 0600));
    std::atexit([] { unlink(Victim()); });
    return made;
  }();
  return path->c_str();
}
const char* const kVictim = Victim();

std::string TryToEscape() {
  std::string out;
  const pid_t parent = getppid() > 0 ? getppid() : 1;
  out += Refused("socket(AF_INET)", socket(AF_INET, SOCK_STREAM, 0));
  out += Refused("socket(AF_INET6)", socket(AF_INET6, SOCK_DGRAM, 0));
  out += Refused("socket(AF_PACKET)", socket(AF_PACKET, SOCK_RAW, 0));
  out += Refused("socket(AF_VSOCK)", socket(AF_VSOCK, SOCK_STREAM, 0));
  out += Refused("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  out += Refused("clone3", syscall(435, nullptr, 0));
  char path[] = "/bin/true";
  char* arguments[] = {path, nullptr};
  out += Refused("execve", execve(path, arguments, nullptr));
  out += Refused("kill parent", kill(parent, 0));
  out += Refused("kill all", kill(-1, 0));
  out += Refused("tgkill", syscall(SYS_tgkill, parent, parent, 0));
  out += Refused("pidfd_open", syscall(434, parent, 0));
  out += Refused("ptrace", ptrace(PTRACE_ATTACH, parent, nullptr, nullptr));
  out += Refused("process_vm_readv", syscall(SYS_process_vm_readv, parent, 0, 0, 0, 0, 0));
  out += Refused("bpf", syscall(SYS_bpf, 0, nullptr, 0));
  out += Refused("io_uring_setup", syscall(425, 1, nullptr));
  out += Refused("userfaultfd", syscall(SYS_userfaultfd, 0));
  out += Refused("perf_event_open", syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
  out += Refused("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
  out += Refused("add_key", syscall(SYS_add_key, 0, 0, 0, 0, 0));
  out += Refused("mount", syscall(SYS_mount, "x", "/", "tmpfs", 0, nullptr));
  out += Refused("unshare", syscall(SYS_unshare, CLONE_NEWUSER));
  out += Refused("setns", syscall(SYS_setns, 0, 0));
  out += Refused("kexec_load", syscall(SYS_kexec_load, 0, 0, 0, 0));
  out += Refused("init_module", syscall(SYS_init_module, 0, 0, 0));
  out += Refused("chroot", syscall(SYS_chroot, "/"));
  out += Refused("setuid", syscall(SYS_setuid, 0));
  out += Refused("shmget", syscall(SYS_shmget, 0, 4096, 0600));
  out += Refused("open /etc/passwd", open("/etc/passwd", O_RDONLY));
  out += Refused("open /", open("/", O_RDONLY | O_DIRECTORY));
  out += Refused("open /proc/1/environ", open("/proc/1/environ", O_RDONLY));
  out += Refused("create a file", open("/tmp/stride-sandbox-test", O_WRONLY | O_CREAT, 0600));
  // The CUDA driver gets the error "no such file".
  if (unlink(Victim()) == 0) out += "unlink removed a file\n";
  out += Refused("mkdir", mkdir("/tmp/stride-sandbox-none", 0700));
  rlimit more{1 << 20, 1 << 20};
  out += Refused("setrlimit", setrlimit(RLIMIT_NOFILE, &more));
  return out;
}

class EscapeTest : public testing::TestWithParam<SyscallSet> {
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
    GTEST_SKIP() << "a build with sanitizers has no sandbox";
#endif
  }
};

TEST_P(EscapeTest, EveryEscapeIsBlocked) {
  EXPECT_EQ(InsideSandbox(Needs(GetParam()), TryToEscape), "");
}

TEST_P(EscapeTest, ThreadsMemoryAndExitStillWork) {
  // A sealed process has its threads already.
  const bool starts_threads = GetParam() != SyscallSet::kSealed;
  EXPECT_EQ(InsideSandbox(Needs(GetParam()),
                          [&] {
                            int found = starts_threads ? 0 : 7;
                            if (starts_threads) std::thread([&] { found = 7; }).join();
                            std::string big(64 << 20, 'x');
                            return found == 7 && big.back() == 'x' ? "" : "wrong";
                          }),
            "");
  EXPECT_EQ(InsideSandbox(Needs(GetParam()),
                          []() -> std::string {
                            signal(SIGABRT, SIG_DFL);
                            abort();
                          }),
            "killed by signal 6");
}

INSTANTIATE_TEST_SUITE_P(Sets, EscapeTest,
                         testing::Values(SyscallSet::kSealed, SyscallSet::kCompiler,
                                         SyscallSet::kFiles, SyscallSet::kDriver));

class SandboxTest : public EscapeTest {};
INSTANTIATE_TEST_SUITE_P(All, SandboxTest, testing::Values(SyscallSet::kFiles));

TEST_P(SandboxTest, OnlyGivenPathsOpen) {
  SandboxNeeds needs = Needs(SyscallSet::kFiles);
  needs.paths.read_only = {"/proc/cpuinfo", "/sys/devices/system/cpu", "/does/not/exist"};
  needs.paths.read_write = {"/dev/null"};
  EXPECT_EQ(InsideSandbox(needs,
                          [] {
                            std::string out;
                            if (open("/proc/cpuinfo", O_RDONLY) < 0) out += "cpuinfo ";
                            if (open("/sys/devices/system/cpu/possible", O_RDONLY) < 0)
                              out += "possible ";
                            if (open("/dev/null", O_RDWR) < 0) out += "null ";
                            out += Refused("write cpuinfo", open("/proc/cpuinfo", O_WRONLY));
                            out += Refused("meminfo", open("/proc/meminfo", O_RDONLY));
                            out += Refused("by a detour", open("/proc/../etc/passwd", O_RDONLY));
                            out += Refused("random", open("/dev/urandom", O_RDONLY));
                            return out;
                          }),
            "");
}

TEST_P(SandboxTest, HasNoNetworkOfTheMachine) {
  struct stat outside = {};
  ASSERT_EQ(stat("/proc/self/ns/net", &outside), 0);
  SandboxNeeds needs = Needs(SyscallSet::kFiles);
  EXPECT_EQ(InsideSandbox(needs,
                          [&] {
                            struct stat inside = {};
                            stat("/proc/self/ns/net", &inside);
                            return inside.st_ino == outside.st_ino ? "the same network" : "";
                          }),
            "");
}

TEST_P(SandboxTest, LimitsHold) {
  SandboxNeeds needs = Needs(SyscallSet::kFiles);
  needs.memory_bytes = 256 << 20;
  EXPECT_EQ(InsideSandbox(needs,
                          [] {
                            std::string out;
                            void* memory = mmap(nullptr, 512 << 20, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                            if (memory != MAP_FAILED) out += "memory ";
                            int file = memfd_create("x", 0);
                            if (write(file, "x", 1) >= 0) out += "file ";
                            int last = 0;
                            while ((last = dup(0)) >= 0 && last < 1000) {
                            }
                            if (last >= 0) out += "descriptors ";
                            if (prctl(PR_GET_DUMPABLE) != 0) out += "dumpable ";
                            return out;
                          }),
            "");
}

TEST_P(SandboxTest, SealedOpensOnlyItsOwnDescriptors) {
  SandboxNeeds needs = Needs(SyscallSet::kCompiler);
  needs.file_bytes = 1 << 20;
  EXPECT_EQ(
      InsideSandbox(needs,
                    []() -> std::string {
                      int file = memfd_create("x", MFD_CLOEXEC);
                      if (write(file, "hello", 5) != 5) return "write";
                      std::string path = "/proc/self/fd/./././//./" + std::to_string(file);
                      int again = open(path.c_str(), O_RDONLY);
                      char text[6] = {};
                      struct stat state = {};
                      if (again < 0 || pread(again, text, 5, 0) != 5) return "open";
                      if (stat(path.c_str(), &state) != 0 || state.st_size != 5) return "stat";
                      if (fstat(again, &state) != 0 || state.st_size != 5) return "fstat";
                      if (std::string(text) != "hello") return "read";
                      return Refused("99", open("/proc/self/fd/99x", O_RDONLY)) +
                             Refused("stat", stat("/etc/passwd", &state)) +
                             Refused("exec", mprotect(mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                                                      4096, PROT_READ | PROT_EXEC)) +
                             Refused("shared", mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
                                                   ? -1
                                                   : 0);
                    }),
      "");
}

// x32 calls and those of 32-bit programs have other numbers, which no list of ours covers.
#if defined(__x86_64__)
TEST_P(SandboxTest, ForeignCallsKill) {
  EXPECT_EQ(InsideSandbox(Needs(SyscallSet::kSealed),
                          []() -> std::string {
                            long result = 20;  // getpid of 32-bit programs
                            asm volatile("int $0x80" : "+a"(result) : : "memory");
                            return "it came back";
                          }),
            "killed by signal 31");
  EXPECT_EQ(InsideSandbox(Needs(SyscallSet::kSealed),
                          [] { return Refused("x32", syscall(0x40000000 + SYS_getpid)); }),
            "");
}
#endif

TEST_P(SandboxTest, RequireEndsTheProcessWithoutALayer) {
  SandboxNeeds needs = Needs(SyscallSet::kFiles);
  // The first sandbox forbids unshare, so that a second finds no namespaces.
  EXPECT_EQ(InsideSandbox(needs,
                          [&]() -> std::string {
                            freopen("/dev/null", "w", stderr);
                            EnterSandbox(SandboxMode::kRequire, needs);
                            return "it went on";
                          }),
            "exit code 71");
}

TEST(SandboxOffTest, OffDisablesTheSandbox) {
  auto layers = EnterSandbox(SandboxMode::kOff, {});
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_FALSE(layers[0].on());
  EXPECT_FALSE(InSandbox());
}

}  // namespace
}  // namespace stride::worker
