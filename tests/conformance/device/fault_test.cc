#include "tests/conformance/device/fault.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

constexpr int kStatusPageFd = 3, kFatalFd = 4;
constexpr int kNoFault = 77;  // the child's exit code without a fault
constexpr uint64_t kFaultingTask = 3;

// An address that no device maps; the memory just after an arena may be mapped.
constexpr char kSource[] = R"(
#include <assert.h>
extern "C" __global__ void fault_address(int* p) { *(volatile int*)64 = 1; }
extern "C" __global__ void fault_after_product(int* p) { *(volatile int*)64 = 1; }
extern "C" __global__ void fault_after_short_products(int* p) { *(volatile int*)64 = 1; }
extern "C" __global__ void fault_assert(int* p) { assert(p[0] == 12345); }
extern "C" __global__ void fault_trap(int* p) { __trap(); }
)";

wire::Task ZeroTask() {
  wire::Task task;
  task.mutable_zero_fill()->set_arena(Harness::kArena);
  task.mutable_zero_fill()->set_size(4096);
  task.set_label("zeros");
  return task;
}

absl::StatusOr<wire::Task> FaultingTask(Harness& harness, const std::string& kind) {
  wire::Code code;
  code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
  code.mutable_source()->set_text(kSource);
  const std::string entry = "fault_" + kind;
  code.mutable_source()->add_entries(entry);
  absl::StatusOr<uint64_t> module = harness.Load(code);
  if (!module.ok()) return module.status();
  wire::Task task;
  task.set_label(entry);
  wire::KernelLaunch* launch = task.mutable_kernel();
  launch->set_module(*module);
  launch->set_entry(entry);
  for (int i = 0; i < 3; ++i) {
    launch->add_grid(1);
    launch->add_block(1);
  }
  launch->add_arguments()->mutable_array()->set_arena(Harness::kArena);
  return task;
}

// A GPU reports products of side 640 outside the stream, and those of side 500 with the next task.
absl::StatusOr<wire::Task> ProductTask(Harness& harness, int64_t side) {
  const DeviceArray ones =
      harness.Put(Make(DType::kFloat32, {side, side}, [](int64_t) { return Value(1); }));
  DeviceArray output;
  return harness.Prepare(MatmulOf(), {ones, ones}, nullptr, &output);
}

// Two tasks, a faulting one, and one after it, all enqueued without waiting: the fault occurs with
// more tasks queued. Returns the last one's sequence.
absl::StatusOr<uint64_t> SubmitOneByOne(Harness& harness, const std::string& kind) {
  absl::StatusOr<wire::Task> faulting = FaultingTask(harness, kind);
  if (!faulting.ok()) return faulting.status();
  const absl::StatusOr<wire::Task> before =
      kind == "after_product" ? ProductTask(harness, 640) : ZeroTask();
  if (!before.ok()) return before.status();
  harness.Submit(*before);
  harness.Submit(*before);
  harness.Submit(*faulting);
  return harness.Submit(ZeroTask());
}

// The same after products, in one packet.
absl::StatusOr<uint64_t> SubmitAfterShortProducts(Harness& harness, const std::string& kind) {
  absl::StatusOr<wire::Task> faulting = FaultingTask(harness, kind);
  if (!faulting.ok()) return faulting.status();
  const absl::StatusOr<wire::Task> product = ProductTask(harness, 500);
  if (!product.ok()) return product.status();
  return harness.SubmitAll({*product, *product, *faulting, *product});
}

// One element, by `function`, a client's.
absl::StatusOr<wire::Task> ApplyTask(Harness& harness, const std::string& function,
                                     const DeviceArray& array) {
  DeviceArray output;
  auto task = harness.Prepare(UfuncOf(function, 1), {array}, &array, &output);
  if (task.ok()) task->set_label(function);
  return task;
}

// Two tasks, a faulting one and one after it, all of one kind and in one packet.
absl::StatusOr<uint64_t> SubmitTogether(Harness& harness) {
  const DeviceArray array = harness.Put(Make(DType::kInt32, {1}, [](int64_t) { return Value(0); }));
  std::vector<wire::Task> packet;
  for (const std::string name : {"next", "next", "fault_function", "next"}) {
    const std::string effect = name == "next" ? "x += 1;" : "*(volatile int*)64 = x;";
    v1::Function function;
    function.mutable_ufunc()->add_signatures("int32->int32");
    auto* body = function.mutable_ufunc()->mutable_body()->mutable_device_function();
    body->set_entry(name);
    body->set_source(absl::StrCat("__device__ int ", name, "(int x) { ", effect, " return x; }"));
    if (absl::Status status = harness.Define(function, name); !status.ok()) return status;
    absl::StatusOr<wire::Task> task = ApplyTask(harness, name, array);
    if (!task.ok()) return task.status();
    packet.push_back(*task);
  }
  return harness.SubmitAll(packet);
}

// The parent's observations of the child.
struct Outcome {
  int wait_status = 0;
  std::string fatal;  // the text that Fatal wrote
  uint32_t completed = 0, started = 0;
};

Outcome RunChild(const std::string& kind) {
  Outcome outcome;
  const int page = memfd_create("status", 0);
  EXPECT_EQ(ftruncate(page, wire::kStatusPageBytes), 0);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const std::string argument = "--fault-child=" + kind;
  const pid_t child = fork();
  if (child == 0) {
    // Above all target descriptor numbers, so that neither dup2 overwrites the other.
    const int high_page = fcntl(page, F_DUPFD, 100), high_pipe = fcntl(ends[1], F_DUPFD, 100);
    dup2(high_page, kStatusPageFd);
    dup2(high_pipe, kFatalFd);
    close_range(kFatalFd + 1, ~0u, 0);
    execl("/proc/self/exe", "fault-child", argument.c_str(), nullptr);
    _exit(126);
  }
  close(ends[1]);
  char buffer[512];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) outcome.fatal.append(buffer, n);
  close(ends[0]);
  waitpid(child, &outcome.wait_status, 0);
  auto map = MemoryMap::Map(page, wire::kStatusPageBytes, false);
  EXPECT_TRUE(map.ok()) << map.status();
  if (map.ok()) {
    const auto* status = reinterpret_cast<const wire::StatusPage*>(map->data());
    outcome.completed = status->completed_sequence.load();
    outcome.started = status->started_sequence.load();
  }
  close(page);
  return outcome;
}

class FaultTest : public DeviceTest {
 protected:
  void Expect(const std::string& kind, const std::string& cause) {
    const Outcome outcome = RunChild(kind);
    const std::string seen =
        absl::StrCat("wait status ", outcome.wait_status, ", fatal report `", outcome.fatal,
                     "`, completed ", outcome.completed, ", started ", outcome.started);
    EXPECT_EQ(outcome.completed, kFaultingTask - 1) << seen;
    EXPECT_GE(outcome.started, kFaultingTask) << seen;
    if (harness().subject().faults_by_signal) {
      EXPECT_TRUE(WIFSIGNALED(outcome.wait_status)) << seen;
      return;
    }
    ASSERT_TRUE(WIFEXITED(outcome.wait_status)) << seen;
    EXPECT_EQ(WEXITSTATUS(outcome.wait_status), 1)
        << seen << "; " << kNoFault << " means that the kernel did not fault";
    const std::string expected = absl::StrCat(
        kFaultingTask, " ", static_cast<int>(absl::StatusCode::kFailedPrecondition), " ");
    EXPECT_EQ(outcome.fatal.rfind(expected, 0), 0u) << seen;
    EXPECT_NE(outcome.fatal.find("fault_" + kind), std::string::npos) << seen;
    EXPECT_NE(outcome.fatal.find(cause), std::string::npos) << seen;
  }

  // The kernel stops itself, which ends the process or only the task.
  void ExpectStop(const std::string& kind, const std::string& cause) {
    if (!harness().subject().survives_asserts) return Expect(kind, cause);
    auto task = FaultingTask(harness(), kind);
    ASSERT_TRUE(task.ok()) << task.status();
    const absl::Status status = harness().Run(*task);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(status.message().find("fault_" + kind), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find(cause), absl::string_view::npos) << status;
    EXPECT_TRUE(harness().Run(ZeroTask()).ok()) << "the task behind it";
  }
};

TEST_F(FaultTest, IllegalAddressEndsProcessAndNamesItsTask) {
  Expect("address", "illegal memory access");
}

TEST_F(FaultTest, FaultAfterProductsNamesItsTask) {
  Expect("after_product", "illegal memory access");
}

TEST_F(FaultTest, FaultAfterShortProductsInOnePacketNamesItsTask) {
  Expect("after_short_products", "illegal memory access");
}

TEST_F(FaultTest, FaultWithinOnePacketNamesItsTask) { Expect("function", "illegal memory access"); }

TEST_F(FaultTest, AssertNamesItsTask) { ExpectStop("assert", "assert"); }

TEST_F(FaultTest, TrapNamesItsTask) { ExpectStop("trap", "trap"); }

}  // namespace

int RunFaultChild(const std::string& kind) {
  absl::StatusOr<SubjectUnderTest> subject = Subject();
  if (!subject.ok()) return 2;
  auto harness = Harness::Start(*subject, kStatusPageFd, kFatalFd);
  if (!harness.ok()) {
    std::fprintf(stderr, "child: %s\n", harness.status().ToString().c_str());
    return 3;
  }
  auto last = kind == "function"               ? SubmitTogether(**harness)
              : kind == "after_short_products" ? SubmitAfterShortProducts(**harness, kind)
                                               : SubmitOneByOne(**harness, kind);
  if (!last.ok()) {
    std::fprintf(stderr, "child: %s\n", last.status().ToString().c_str());
    return 4;
  }
  const absl::Status status = (*harness)->recorder().AwaitTask(*last);
  std::fprintf(stderr, "child: no fault; the task after it: %s\n", status.ToString().c_str());
  _exit(kNoFault);
}

}  // namespace stride::conformance
