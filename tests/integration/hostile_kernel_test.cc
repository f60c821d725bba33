// Malicious kernels and sources on the CPU device, where a kernel is native code: the purpose of
// the sandbox of workers and compilers. Each is stopped or harmless and reported with its name.
// Neither the daemon nor another tenant's job is affected.

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "gmock/gmock.h"
#include "stride/v1/compute_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
constexpr bool kSandboxed = false;  // nor are workers built with sanitizers
#else
constexpr bool kSandboxed = true;
#endif

// Flags of threads as the C library creates them.
constexpr int64_t kThread = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;

constexpr char kHostile[] = R"(
// The compiler accepts no inline assembly, but constants can contain machine code. Each constant is
// the immediate value of a store, so that the order of the stores does not matter:
//   mov %r9,%rax; jmp *8(%rsp)
//   xor %r9d,%r9d; jmp *16(%rsp)
//   mov %rcx,%r10; syscall; ret
__device__ __noinline__ void hidden(volatile unsigned long long* p) {
  p[1] = 0x90082464ffc8894c;
  p[2] = 0x90102464ffc93145;
  p[3] = 0x9090c3050fca8949;
}
__device__ const void* find(unsigned begin) {
  const unsigned char* at = (const unsigned char*)(void*)&hidden;
  for (int i = 0; i < 200; ++i) {
    unsigned there = at[i] | at[i + 1] << 8 | at[i + 2] << 16 | (unsigned)at[i + 3] << 24;
    if (there == begin) return at + i;
  }
  return nullptr;
}
// The call's sixth argument, such as the offset of a mapping, is zero.
typedef long (*Call)(long, long, long, long, long, long, const void*, const void*);
__device__ long call(long number, long a, long b, long c, long d) {
  const void *first = find(0xffc8894c), *second = find(0xffc93145), *third = find(0x0fca8949);
  if (!first || !second || !third) return -12345;
  return ((Call)(void*)first)(a, b, c, d, d, number, second, third);
}
// text: bytes that an argument of the call may point to.
extern "C" __global__ void make_call(long long* out, const char* text, long long number, long long a,
                                     long long b, long long c, long long d) {
  out[0] = call(number, a == -999 ? (long)text : a, b == -999 ? (long)text : b, c, d);
}
extern "C" __global__ void take_memory(long long* out) {
  long long taken = 0;
  for (;;) {
    // 64 MiB, private, readable and writable.
    long at = call(9, 0, 64 << 20, 3, 0x22);
    if (at < 0 && at > -4096) break;
    taken += 64;
  }
  out[0] = taken;
}
extern "C" __global__ void close_all(long long* out) {
  for (int i = 0; i < 64; ++i) call(3, i, 0, 0, 0);
  out[0] = 1;
}
// A compromised worker could send this: endless garbage.
extern "C" __global__ void send_garbage(long long* out, const char* text) {
  for (;;) call(44, 3, (long)text, 100, 0x4000);
}
extern "C" __global__ void write_errors(long long* out, const char* text) {
  for (int i = 0; i < 100000; ++i) call(1, 2, (long)text, 100, 0);
  out[0] = 1;
}
extern "C" __global__ void print_much(long long* out) {
  for (int i = 0; i < 200000; ++i) printf("%d %s\n", i, "a line that nobody asked for");
  out[0] = 1;
}
__device__ __noinline__ int deeper(int n, volatile long long* x) {
  volatile int frame[64];
  frame[n % 64] = n;
  return x[0] == -1 ? 0 : deeper(n + 1, x) + frame[n % 64];
}
extern "C" __global__ void recurse(long long* out) { out[0] = deeper(0, out); }
extern "C" __global__ void loop(volatile long long* out) { while (out[0] != -1) {} }
// Everything within reach of its array: only its own tenant's memory.
extern "C" __global__ void scribble(long long* out) {
  for (long i = 0;; ++i) ((volatile long long*)out)[i] = 0x4141414141414141;
}
)";

KernelOptions Launch(std::string entry, std::vector<KernelArgument> arguments) {
  KernelOptions options;
  options.code = kHostile;
  options.entry = std::move(entry);
  options.grid = {1};
  options.block = {1};
  options.arguments = std::move(arguments);
  return options;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ino_t NamespaceOf(pid_t pid, const std::string& kind) {
  struct stat state = {};
  stat(("/proc/" + std::to_string(pid) + "/ns/" + kind).c_str(), &state);
  return state.st_ino;
}

class HostileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kSandboxed) GTEST_SKIP() << "a build with sanitizers has no sandbox";
    setenv("SECRET_TOKEN", "do not tell", 1);
    setenv("STRIDE_PASSWORD", "do not tell", 1);
    daemon_.emplace(std::vector<std::string>{"--cpu-devices=1x1", "--kill-grace=200ms",
                                             "--trust-tenant-header", "--require-sandbox",
                                             "--compile-memory-bytes=536870912"});
    client_.emplace(daemon_->Connect());
    other_.emplace(daemon_->address(), "other");
    EXPECT_EQ(OthersJob(), 7);
    others_worker_ = daemon_->Workers();
    text_ = Must(client_->Put(Text("/etc/passwd"), {12}));
  }

  void TearDown() override {
    if (!daemon_.has_value()) return;
    // After every test: another tenant's jobs run, and the daemon has not been replaced.
    EXPECT_EQ(OthersJob(), 7);
    EXPECT_FALSE(daemon_->Wait(milliseconds(1)).has_value());
    EXPECT_EQ(Get<int32_t>(*client_, client_->Full({DataType::kInt32, {1}}, 5))[0], 5);
  }

  static std::vector<int8_t> Text(const std::string& text) {
    return std::vector<int8_t>(text.c_str(), text.c_str() + text.size() + 1);
  }

  // 3 + 4 for tenant `other`.
  int32_t OthersJob() {
    v1::RunRequest request;
    auto* expression = request.mutable_operation()->mutable_expression();
    expression->set_text("x + 4");
    auto* x = (*expression->mutable_inputs())["x"].mutable_inline_array();
    x->mutable_spec()->set_data_type(v1::DATA_TYPE_INT32);
    x->mutable_spec()->add_shape(1);
    const int32_t three = 3;
    x->set_data(&three, sizeof(three));
    request.mutable_operation()->add_outputs()->set_inline_result(true);
    auto reply = other_->Get<v1::RunResponse>("ComputeService/Run", request);
    int32_t value = 0;
    std::memcpy(&value, reply.results(0).inline_array().data().data(), sizeof(value));
    return value;
  }

  Array Out() { return client_->Zeros({DataType::kInt64, {1}}); }

  // The error of a kernel that makes one system call. -999 stands for the address of "/etc/passwd".
  Error ErrorOfCall(int64_t number, int64_t a = 0, int64_t b = 0, int64_t c = 0, int64_t d = 0) {
    Array out = Out();
    client_->Kernel(Launch("make_call", {out, text_, number, a, b, c, d}));
    return MustFail(client_->Fetch<int64_t>(out));
  }
  int64_t ResultOfCall(int64_t number, int64_t a = 0, int64_t b = 0, int64_t c = 0, int64_t d = 0) {
    Array out = Out();
    client_->Kernel(Launch("make_call", {out, text_, number, a, b, c, d}));
    return Get<int64_t>(*client_, out)[0];
  }

  Error CompileError(const std::string& source, std::vector<std::string> options = {}) {
    KernelOptions launch = Launch("k", {KernelArgument::Out({DataType::kInt32, {1}})});
    launch.code = source;
    launch.compiler_options = std::move(options);
    auto out = client_->Kernel(launch);
    return MustFail(client_->Fetch<int32_t>(out.at(0)));
  }

  std::optional<Daemon> daemon_;
  std::optional<Client> client_;
  std::optional<Rpc> other_;
  std::vector<pid_t> others_worker_;
  Array text_;
};

TEST_F(HostileTest, ForbiddenSystemCallsAreFaultsThatNameTheKernel) {
  const pid_t daemon = daemon_->pid();
  const struct {
    const char* what;
    int64_t number, a, b, c, d;
  } calls[] = {
      {"open", SYS_open, -999, 0, 0, 0},
      {"openat", SYS_openat, -100, -999, 0, 0},
      {"creat", SYS_creat, -999, 0600, 0, 0},
      {"unlink", SYS_unlink, -999, 0, 0, 0},
      {"stat", SYS_stat, -999, -999, 0, 0},
      {"readlink", SYS_readlink, -999, -999, 10, 0},
      {"socket", SYS_socket, AF_INET, SOCK_STREAM, 0, 0},
      {"socket AF_UNIX", SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0},
      {"connect", SYS_connect, 3, -999, 10, 0},
      {"kill the daemon", SYS_kill, daemon, SIGKILL, 0, 0},
      {"kill all", SYS_kill, -1, SIGKILL, 0, 0},
      {"tgkill the daemon", SYS_tgkill, daemon, daemon, SIGKILL, 0},
      {"tkill the daemon", SYS_tkill, daemon, SIGKILL, 0, 0},
      {"fork", SYS_fork, 0, 0, 0, 0},
      {"vfork", SYS_vfork, 0, 0, 0, 0},
      {"clone", SYS_clone, SIGCHLD, 0, 0, 0},
      // State that would outlive its task, or affect the next task on the same thread.
      {"a thread", SYS_clone, kThread, 0, 0, 0},
      {"a thread that shares all", SYS_clone, kThread | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM, 0,
       0, 0},
      {"clone3", SYS_clone3, -999, 64, 0, 0},
      {"end of the thread", SYS_exit, 0, 0, 0, 0},
      {"blocked signals", SYS_rt_sigprocmask, SIG_BLOCK, -999, 0, 8},
      {"another signal stack", SYS_sigaltstack, -999, 0, 0, 0},
      {"restartable sequences", SYS_rseq, -999, 32, 1, 0},
      {"robust locks", SYS_set_robust_list, -999, 24, 0, 0},
      {"word cleared at the end", SYS_set_tid_address, -999, 0, 0, 0},
      {"interval timer", SYS_setitimer, 0, -999, 0, 0},
      {"alarm", SYS_alarm, 1, 0, 0, 0},
      {"timer", SYS_timer_create, 0, 0, -999, 0},
      {"timer descriptor", SYS_timerfd_create, 0, 0, 0, 0},
      {"limit of processor time", SYS_prlimit64, 0, RLIMIT_CPU, -999, 0},
      {"personality", SYS_personality, 0, 0, 0, 0},
      {"name of the thread", SYS_prctl, 15, -999, 0, 0},
      {"thread pointer", SYS_arch_prctl, 0x1002, 0, 0, 0},
      {"affinity", SYS_sched_setaffinity, 0, 8, -999, 0},
      {"priority", SYS_setpriority, 0, 0, 10, 0},
      {"stop itself", SYS_kill, 0, SIGSTOP, 0, 0},
      {"code that can be written", SYS_mprotect, 0x10000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
       0},
      {"execve", SYS_execve, -999, 0, 0, 0},
      {"ptrace", SYS_ptrace, 16, daemon, 0, 0},
      {"process_vm_writev", SYS_process_vm_writev, daemon, -999, 1, -999},
      {"memfd_create", SYS_memfd_create, -999, 0, 0, 0},
      {"new handler", SYS_rt_sigaction, SIGSYS, 0, 0, 8},
      {"own filter", SYS_seccomp, 0, 0, 0, 0},
      {"more limits", SYS_prlimit64, 0, 7, -999, 0},
      {"dumpable", SYS_prctl, 4, 1, 0, 0},
      {"executable memory", SYS_mmap, 0, 4096, 7, 0x22},
      {"shared memory", SYS_mmap, 0, 4096, 3, 0x21},
      {"owner of the socket", SYS_fcntl, 3, 8, daemon, 0},
      {"ioctl", SYS_ioctl, 3, 0x8902, -999, 0},
      {"io_uring", 425, 8, -999, 0, 0},
      {"mount", SYS_mount, -999, -999, -999, 0},
      {"no such call", 4000, 0, 0, 0, 0},
  };
  for (const auto& call : calls) {
    SCOPED_TRACE(call.what);
    const Error error = ErrorOfCall(call.number, call.a, call.b, call.c, call.d);
    EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "KERNEL_FAULT"));
    EXPECT_THAT(error.message, AllOf(HasSubstr("system call"), HasSubstr("make_call")));
    EXPECT_EQ(OthersJob(), 7);
  }
  // The hostile kernel's end did not affect its process.
  for (pid_t pid : others_worker_) {
    if (kill(pid, 0) == 0) return;
  }
  ADD_FAILURE() << "the other tenant's worker is gone";
}

TEST_F(HostileTest, AllowedCallsRevealNothing) {
  EXPECT_GT(ResultOfCall(SYS_getpid), 0);
  EXPECT_EQ(ResultOfCall(SYS_read, 0, -999, 0), 0);     // /dev/null
  EXPECT_EQ(ResultOfCall(SYS_write, 77, -999, 5), -9);  // EBADF
  EXPECT_EQ(ResultOfCall(SYS_geteuid),
            65534);  // the overflow user id, in a separate user namespace
}

// Nor a signal to its own process except that of abort(), which is reported like any other fault.
TEST_F(HostileTest, SignalsToOwnProcessAreFaults) {
  for (const int signal : {SIGSTOP, SIGKILL, SIGUSR1, SIGALRM}) {
    const int64_t self = ResultOfCall(SYS_getpid);
    const Error error = ErrorOfCall(SYS_tgkill, self, self, signal);
    EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "KERNEL_FAULT"));
    EXPECT_THAT(error.message, HasSubstr("system call"));
  }
}

// The threads of the pool and the library exist before the first kernel, and no others are created.
TEST_F(HostileTest, ThreadsExistBeforeTheFirstKernel) {
  Daemon daemon({"--cpu-devices=1x3", "--trust-tenant-header", "--require-sandbox"});
  Client client = daemon.Connect();
  Array ones = client.Full({DataType::kFloat64, {1}}, 1);
  EXPECT_EQ(Get<double>(client, ones)[0], 1);
  auto threads = [&] {
    int64_t most = 0;
    for (pid_t pid : daemon.Workers()) {
      std::error_code ended;
      const fs::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", ended);
      most = std::max<int64_t>(most, std::distance(fs::begin(tasks), fs::end(tasks)));
    }
    return most;
  };
  const int64_t before = threads();
  EXPECT_GT(before, 5);  // two each for the pool and the library, and the worker's own
  // Large enough for all threads of the library, after a kernel and after calls on one thread.
  std::vector<double> values(600 * 600, 0.5);
  Array matrix = Must(client.Put(values, {600, 600}));
  for (int i = 0; i < 3; ++i) {
    Array product = client.Compute(Operation::Matmul(matrix, matrix));
    EXPECT_EQ(Get<double>(client, product)[0], 150);
    KernelOptions launch = Launch("loop", {client.Full({DataType::kInt64, {1}}, -1)});
    client.Kernel(launch);
    Must(client.Synchronize());
  }
  EXPECT_EQ(threads(), before);
}

// Usage is the kernel's processor time of the process, not the duration of tasks.
TEST_F(HostileTest, AllProcessorTimeIsCharged) {
  Daemon daemon({"--cpu-devices=1x2", "--trust-tenant-header", "--require-sandbox"});
  Client client = daemon.Connect();
  KernelOptions launch = Launch("work", {});
  launch.code = R"(extern "C" __global__ void work(long long* out, long long n) {
    volatile long long x = 1;
    for (long long i = 0; i < n; ++i) x = x * 3 + i;
    out[blockIdx.x] = x;
  })";
  launch.grid = {8};
  Array out = client.Zeros({DataType::kInt64, {8}});
  launch.arguments = {out, int64_t{500'000'000}};
  client.Kernel(launch);
  Must(client.Synchronize());
  double used = 0;  // by the worker that is not a spare
  for (pid_t pid : daemon.Workers()) {
    const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
    if (stat.rfind(')') == std::string::npos) continue;
    std::istringstream rest(stat.substr(stat.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) rest >> skipped;
    int64_t user = 0, system = 0;
    rest >> user >> system;
    used = std::max(used,
                    static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)));
  }
  EXPECT_GT(used, 0.5);
  // Minus the time of its start, which is charged to no tenant.
  EXPECT_GE(Must(client.GetUsage()).device_seconds, used - 0.25);
}

// The fault handler does not trust any memory that the kernel may have overwritten: the thread's
// own variables, its launch, and their surroundings.
TEST_F(HostileTest, FaultsAfterMemoryCorruptionNameTheKernel) {
  KernelOptions launch = Launch("scribble_and_fault", {});
  launch.code = R"(
extern "C" __global__ void scribble_and_fault(long long* out, int what) {
  if (what == 0) {
    volatile unsigned char* thread = (volatile unsigned char*)__builtin_thread_pointer();
    for (int i = 1; i <= 1024; ++i) thread[-i] = 0x41;
  } else {
    // The launch and the kernel's description: pointers to pointers.
    volatile unsigned long long* launch = *(unsigned long long**)__stride_context()->launch;
    volatile unsigned long long* kernel = (unsigned long long*)launch[0];
    for (int i = 0; i < 4; ++i) kernel[i] = 0x4141414141414141;
    for (int i = 0; i < 4; ++i) launch[i] = 0x4141414141414141;
  }
  *(volatile int*)64 = 1;
})";
  for (int what : {0, 1}) {
    SCOPED_TRACE(what);
    Array out = Out();
    launch.arguments = {out, what};
    client_->Kernel(launch);
    const Error error = MustFail(client_->Fetch<int64_t>(out));
    EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "KERNEL_FAULT"));
    EXPECT_THAT(error.message, AllOf(HasSubstr("illegal memory access"), HasSubstr("null pointer"),
                                     HasSubstr("scribble_and_fault")));
  }
}

TEST_F(HostileTest, KillingItselfLosesTheWorker) {
  const Error error = ErrorOfCall(SYS_exit_group, 0);
  EXPECT_TRUE(IsError(error, Code::kAborted, "WORKER_LOST"));
}

TEST_F(HostileTest, MemoryExhaustionStopsAtTheLimit) {
  Array out = Out();
  client_->Kernel(Launch("take_memory", {out}));
  const int64_t megabytes = Get<int64_t>(*client_, out)[0];
  EXPECT_GT(megabytes, 1024);
  std::ifstream file("/proc/meminfo");
  std::string word;
  int64_t kilobytes = 0;
  file >> word >> kilobytes;
  EXPECT_LE(megabytes, std::max<int64_t>(4096, kilobytes / 1024 / 2));
}

TEST_F(HostileTest, LostSocketAndGarbageCostOnlyTheWorker) {
  Array kept = Must(client_->Put(Iota<int32_t>(1000), {1000}));
  for (const char* entry : {"close_all", "send_garbage"}) {
    SCOPED_TRACE(entry);
    Array out = Out();
    std::vector<KernelArgument> arguments = {out};
    if (entry == std::string("send_garbage")) arguments.push_back(text_);
    client_->Kernel(Launch(entry, arguments));
    auto result = client_->Fetch<int64_t>(out);
    // Without its socket it may still have reported on the status page that it was done.
    if (!result || arguments.size() > 1) {
      EXPECT_TRUE(IsError(MustFail(result), Code::kAborted, "WORKER_LOST"));
    }
    EXPECT_EQ(Get<int32_t>(*client_, client_->Ufunc("add", {kept, Operand(1)}))[999], 1000);
  }
}

TEST_F(HostileTest, OutputIsBounded) {
  Array out = Out();
  client_->Kernel(Launch("write_errors", {out, text_}));
  EXPECT_EQ(Get<int64_t>(*client_, out)[0], 1);
  Array printed = Out();
  client_->Kernel(Launch("print_much", {printed}));
  EXPECT_EQ(Get<int64_t>(*client_, printed)[0], 1);
  EXPECT_LT(daemon_->Log().size(), 200u << 10);
}

TEST_F(HostileTest, StackOverflowNamesItsKernel) {
  Array out = Out();
  client_->Kernel(Launch("recurse", {out}));
  const Error error = MustFail(client_->Fetch<int64_t>(out));
  EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "KERNEL_FAULT"));
  EXPECT_THAT(error.message, HasSubstr("recurse"));
}

TEST_F(HostileTest, EndlessLoopDoesNotBlockOthers) {
  Array ends = client_->Full({DataType::kInt64, {1}}, -1);
  client_->Kernel(Launch("loop", {ends}));
  Get<int64_t>(*client_, ends);  // compiled
  Array out = Out();
  ComputeOptions options;
  options.timeout = seconds(1);
  client_->ComputeAll(Operation::Kernel(Launch("loop", {out})), options);
  EXPECT_EQ(OthersJob(), 7);
  EXPECT_TRUE(IsError(MustFail(client_->Fetch<int64_t>(out)), Code::kDeadlineExceeded, "DEADLINE"));
}

TEST_F(HostileTest, OutOfBoundsWritesStayInItsArena) {
  Array out = Out();
  client_->Kernel(Launch("scribble", {out}));
  const Error error = MustFail(client_->Fetch<int64_t>(out));
  EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "KERNEL_FAULT"));
  EXPECT_THAT(error.message, HasSubstr("scribble"));
}

TEST_F(HostileTest, ProcessesAreConfined) {
  CompileError("this does not compile");  // a compiler runs
  std::vector<pid_t> all = daemon_->Workers();
  const auto compilers = daemon_->Compilers();
  ASSERT_FALSE(all.empty());
  ASSERT_FALSE(compilers.empty());
  all.insert(all.end(), compilers.begin(), compilers.end());
  const fs::path proc = "/proc";
  for (pid_t pid : all) {
    SCOPED_TRACE(pid);
    const fs::path self = proc / std::to_string(pid);
    std::string status;
    // A spare may still be entering its sandbox, and this is its last step.
    Eventually([&] {
      status = ReadFile(self / "status");
      return status.find("Seccomp:\t2") != std::string::npos;
    });
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
    EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
    EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000"));
    EXPECT_THAT(status, HasSubstr("CapBnd:\t0000000000000000"));
    for (const char* kind : {"user", "net", "ipc", "uts"}) {
      EXPECT_NE(NamespaceOf(pid, kind), NamespaceOf(daemon_->pid(), kind)) << kind;
    }
    EXPECT_EQ(ReadFile(self / "oom_score_adj"), "800\n");
    EXPECT_THAT(ReadFile(self / "environ"),
                AllOf(Not(HasSubstr("do not tell")), Not(HasSubstr("NOTIFY"))));
    EXPECT_THAT(ReadFile(self / "limits"), HasSubstr("Max core file size        0"));
    std::multiset<std::string> descriptors;
    for (const auto& entry : fs::directory_iterator(self / "fd")) {
      std::error_code error;
      std::string target = fs::read_symlink(entry.path(), error).string();
      descriptors.insert(target.substr(0, target.find(':')));
    }
    EXPECT_THAT(descriptors,
                AnyOf(::testing::ElementsAre("/dev/null", "/dev/null", "/dev/null", "socket"),
                      ::testing::ElementsAre("/dev/null", "/dev/null", "pipe", "socket")));
  }
  EXPECT_THAT(daemon_->Log(), HasSubstr("sandbox: namespaces, capabilities, limits, files"));
}

// --- sources ---

constexpr char kKernel[] = "extern \"C\" __global__ void k(int* x) { x[0] = 1; }\n";

TEST_F(HostileTest, SourcesReadNoFile) {
  ASSERT_THAT(ReadFile("/etc/passwd"), HasSubstr("root:"));
  for (const std::string include :
       {"#include \"/etc/passwd\"\n", "#include </etc/passwd>\n",
        "#include \"../../../../../../../../etc/passwd\"\n", "#include \"/proc/self/environ\"\n",
        "#include \"/proc/self/fd/3\"\n", "#define F \"/etc/passwd\"\n#include F\n",
        "#if __has_include(\"/etc/passwd\")\n#error found\n#else\n#error not found\n#endif\n",
        "#pragma GCC dependency \"/etc/passwd\"\n#error not found\n", "#embed \"/etc/passwd\"\n",
        "__device__ void f() { asm(\".incbin \\\"/etc/passwd\\\"\"); }\n"}) {
    SCOPED_TRACE(include);
    const Error error = CompileError(include + kKernel);
    EXPECT_THAT(error.message, AllOf(Not(HasSubstr("root:")), Not(HasSubstr("daemon:")),
                                     Not(HasSubstr("PATH=")), Not(HasSubstr("#error found"))));
    EXPECT_THAT(error.code, AnyOf(Code::kInvalidArgument, Code::kUnimplemented))
        << error.ToString();
  }
}

TEST_F(HostileTest, OptionsOutsideTheListAreRefused) {
  for (const char* option : {"-I/etc",
                             "--include-path=/etc",
                             "-include",
                             "-include=/etc/passwd",
                             "--pre-include=/etc/x",
                             "--create-pch=/tmp/stride-pch",
                             "--use-pch=/tmp/x",
                             "--pch-dir=/tmp",
                             "@/etc/passwd",
                             "-load",
                             "-fplugin=/tmp/x.so",
                             "-Xclang",
                             "-mllvm",
                             "-o/tmp/x",
                             "-MF/tmp/x",
                             "-MD",
                             "-emit-pch",
                             "-ivfsoverlay",
                             "-isysroot/",
                             "--options-file=/etc/passwd",
                             "-fmodules",
                             "-save-temps",
                             "--time=/tmp/x",
                             "-DA\n-I/etc",
                             "-D",
                             "-D=1",
                             "-U1",
                             "/etc/passwd",
                             ""}) {
    SCOPED_TRACE(option);
    const Error error = CompileError(kKernel, {option});
    EXPECT_TRUE(IsError(error, Code::kInvalidArgument, "OPTION_NOT_ALLOWED"));
  }
  EXPECT_FALSE(fs::exists("/tmp/stride-pch"));
}

TEST_F(HostileTest, CompilersAreBounded) {
  const struct {
    const char* what;
    std::string source;
  } bombs[] = {
      {"a file that includes itself", "#include __FILE__\n"},
      {"recursive templates",
       "template <int N> struct T { static const int v = T<N + 1>::v; };\n"
       "__device__ int x = T<0>::v;\n"},
      {"endless constant",
       "constexpr int f() { int i = 0; while (true) ++i; return i; }\n"
       "__device__ int x = f() + 0; static_assert(f() == 0);\n"},
      {"deep parentheses", "__device__ int x = " + std::string(200000, '(') + "1;\n"},
      {"deep braces",
       "__device__ void f() " + std::string(100000, '{') + std::string(100000, '}') + "\n"},
      {"huge memory",
       "template <int N, long long M> struct Tree { static const int value = Tree<N - 1, 2 * "
       "M>::value + Tree<N - 1, 2 * M + 1>::value; };\n"
       "template <long long M> struct Tree<0, M> { static const int value = M & 1; };\n"
       "__device__ int x = Tree<22, 1>::value;\n"},
      {"a crash asked for", "#pragma clang __debug crash\n"},
  };
  for (const auto& bomb : bombs) {
    SCOPED_TRACE(bomb.what);
    const auto begin = std::chrono::steady_clock::now();
    const Error error = CompileError(bomb.source + kKernel);
    const auto took = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %.1f s: %s\n", bomb.what, std::chrono::duration<double>(took).count(),
                error.message.substr(0, 150).c_str());
    // The daemon bounds processor time and memory; a busy machine takes a multiple of that.
    EXPECT_LT(took, seconds(400));
    EXPECT_LE(error.message.size(), 40u << 10);
    EXPECT_THAT(error.message, Not(HasSubstr("/usr/")));
    // The next source finds a compiler.
    EXPECT_EQ(CompileError("not C++").code, Code::kInvalidArgument);
  }
}

TEST(SandboxFlagTest, SandboxOffIsReported) {
  Daemon daemon({"--no-sandbox"});
  Client client = daemon.Connect();
  EXPECT_EQ(Get<int32_t>(client, client.Full({DataType::kInt32, {1}}, 5))[0], 5);
  EXPECT_THAT(daemon.Log(), HasSubstr("sandbox: none"));
}

}  // namespace
}  // namespace stride::testing
