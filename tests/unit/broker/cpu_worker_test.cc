// The broker with the real CPU worker and compiler: from source text to results, with faults and
// kills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/broker/broker.h"
#include "server/broker/compiler_process.h"
#include "server/broker/content_key.h"
#include "server/ops/plan.h"
#include "server/store/dtype.h"
#include "tests/support/await.h"
#include "tests/unit/broker/recorder.h"

namespace stride::broker {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kArena = 1;
constexpr uint64_t kArenaBytes = 1 << 20;
constexpr int kCount = 1000;

constexpr char kSource[] = R"(
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void overrun(float* a) { a[(1ll << 30) + blockIdx.x] = 1; }
extern "C" __global__ void null(int* a) { *(volatile int*)nullptr = blockIdx.x; }
extern "C" __global__ void divide(int* a, int zero) { a[0] = a[1] / zero; }
extern "C" __global__ void refuse(int* a) { assert(a[0] == 12345); }
extern "C" __global__ void endless(volatile int* a) { while (a[0] != 12345) {} }
)";

class CpuWorkerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    BrokerOptions options;
    options.worker_directory = CPU_WORKERS;
    options.cpu_devices = {2};
    options.use_cuda = false;
    auto broker = Broker::Create(options);
    ASSERT_TRUE(broker.ok()) << broker.status();
    broker_ = broker->release();
    module_ = Compile(kSource);
  }
  static void TearDownTestSuite() {
    module_.reset();
    delete broker_;
  }

  static std::shared_ptr<const CompiledModule> Compile(const std::string& text) {
    wire::Code code;
    code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
    code.mutable_source()->set_text(text);
    return Compile(code);
  }
  static std::shared_ptr<const CompiledModule> Compile(const wire::Code& code) {
    absl::Notification called;
    std::shared_ptr<const CompiledModule> result;
    broker_->compiler().Compile(TenantId{"t"}, broker_->devices()[0].target(), code,
                                [&](absl::StatusOr<std::shared_ptr<const CompiledModule>> module) {
                                  EXPECT_TRUE(module.ok()) << module.status();
                                  if (module.ok()) result = *module;
                                  called.Notify();
                                });
    AWAIT(called.HasBeenNotified());
    return result;
  }

  void SetUp() override {
    ASSERT_NE(module_, nullptr);
    arena_file_ = *CreateMemoryFile("arena", kArenaBytes);
    arena_ = *MemoryMap::Map(arena_file_.get(), kArenaBytes, true);
    StartWorker();
  }

  void StartWorker() {
    if (worker_) worker_.reset();
    auto worker = broker_->StartWorker(0);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    recorder_ = std::make_shared<JournalWriter>();
    // Callbacks may run after the test: they own their state.
    WorkerCallbacks callbacks = recorder_->callbacks();
    worker_->Adopt(
        {.tasks_done = [r = recorder_, f = callbacks.tasks_done](auto results) { f(results); },
         .died = [r = recorder_, f = callbacks.died](auto& death) { f(death); }});
    sequence_ = 0;
    ASSERT_TRUE(worker_->MapArena(kArena, kArenaBytes, arena_file_.get()).ok());
    ASSERT_TRUE(worker_
                    ->LoadModule(*module_,
                                 [](absl::StatusOr<wire::ModuleLoaded> loaded) {
                                   // A short test may end earlier.
                                   EXPECT_TRUE(loaded.ok() || absl::IsUnavailable(loaded.status()))
                                       << loaded.status();
                                 })
                    .ok());
  }

  float* Floats(uint64_t offset) { return reinterpret_cast<float*>(arena_.data() + offset); }

  static void AddArray(wire::KernelLaunch* launch, uint64_t offset) {
    launch->add_arguments()->mutable_array()->set_arena(kArena);
    launch->mutable_arguments()->rbegin()->mutable_array()->set_offset(offset);
  }
  static void AddInt(wire::KernelLaunch* launch, int value) {
    launch->add_arguments()->set_raw(std::string(reinterpret_cast<char*>(&value), sizeof(value)));
  }
  wire::Task Kernel(const std::string& entry, uint32_t grid = 1, uint32_t block = 1) {
    wire::Task task;
    task.set_label(entry);
    auto* launch = task.mutable_kernel();
    launch->set_module(module_->id);
    launch->set_entry(entry);
    for (uint32_t extent : {grid, 1u, 1u}) launch->add_grid(extent);
    for (uint32_t extent : {block, 1u, 1u}) launch->add_block(extent);
    return task;
  }
  wire::Task Add() {
    wire::Task task = Kernel("add", 8, 128);
    for (uint64_t offset : {0, 4096, 8192}) AddArray(task.mutable_kernel(), offset);
    AddInt(task.mutable_kernel(), kCount);
    return task;
  }
  wire::Task OnArray(const std::string& entry) {
    wire::Task task = Kernel(entry);
    AddArray(task.mutable_kernel(), 0);
    return task;
  }

  void Submit(wire::Task task) {
    task.set_sequence(++sequence_);
    wire::TaskPacket packet;
    packet.Add(task);
    absl::Status status = worker_->Submit(packet);
    ASSERT_TRUE(status.ok()) << status;
  }
  wire::TaskResult Run(wire::Task task) {
    Submit(std::move(task));
    auto results = recorder_->WaitForResults(sequence_);
    EXPECT_EQ(results.size(), sequence_);
    return results.empty() ? wire::TaskResult() : results.back();
  }

  void FillInputs() {
    for (int i = 0; i < kCount; ++i) {
      Floats(0)[i] = static_cast<float>(i);
      Floats(4096)[i] = static_cast<float>(2 * i);
    }
  }
  void CheckSum() {
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(Floats(8192)[i], static_cast<float>(3 * i)) << i;
  }

  static Broker* broker_;
  static std::shared_ptr<const CompiledModule> module_;
  UniqueFd arena_file_;
  MemoryMap arena_;
  std::shared_ptr<JournalWriter> recorder_;
  std::shared_ptr<Worker> worker_;
  uint64_t sequence_ = 0;
};

Broker* CpuWorkerTest::broker_ = nullptr;
std::shared_ptr<const CompiledModule> CpuWorkerTest::module_;

TEST_F(CpuWorkerTest, ListsTheMachine) {
  const wire::DeviceDescription& device = broker_->devices()[0];
  EXPECT_EQ(device.id(), "cpu:0");
  EXPECT_TRUE(device.host_memory());
  EXPECT_EQ(device.num_compute_units(), 2);
  EXPECT_GT(device.memory_bytes(), 1 << 20);
  EXPECT_THAT(device.target(), ::testing::StartsWith("cpu:"));
}

TEST_F(CpuWorkerTest, ParametersAreDescribed) {
  const wire::KernelDescription& add = module_->description.kernels(0);
  ASSERT_EQ(add.entry(), "add");
  ASSERT_EQ(add.parameters_size(), 4);
  EXPECT_EQ(add.parameters(0).pointee_dtype(), static_cast<int>(DType::kFloat32));
  EXPECT_TRUE(add.parameters(0).pointee_const());
  EXPECT_FALSE(add.parameters(2).pointee_const());
  EXPECT_EQ(add.parameters(3).kind(), wire::Parameter::KIND_INTEGER);
  EXPECT_EQ(add.parameters(3).offset(), 24u);
}

TEST_F(CpuWorkerTest, RunsAKernel) {
  FillInputs();
  wire::TaskResult result = Run(Add());
  EXPECT_EQ(result.status().code(), 0) << result.status().message();
  EXPECT_GT(result.run_seconds(), 0);
  CheckSum();
}

// A ufunc as the daemon runs it: planned, compiled, loaded, bound, submitted.
TEST_F(CpuWorkerTest, RunsAPlannedUfunc) {
  FillInputs();
  v1::Operation operation;
  operation.mutable_ufunc()->set_function("multiply");
  for (int i = 0; i < 2; ++i) {
    operation.mutable_ufunc()->add_inputs()->set_handle(i + 1);
  }
  operation.add_outputs()->set_handle(3);
  ArrayInfo array = Contiguous(DType::kFloat32, {kCount});
  auto plan = ops::PlanOperation(operation, {array, array}, {ops::Input()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto module = Compile(*plan->code);
  ASSERT_NE(module, nullptr);
  ASSERT_TRUE(worker_->LoadModule(*module, nullptr).ok());
  ops::Bind(&plan->task, {{kArena, 0}, {kArena, 4096}, {kArena, 8192}});
  plan->task.mutable_elementwise()->set_module(module->id);
  wire::TaskResult result = Run(plan->task);
  EXPECT_EQ(result.status().code(), 0) << result.status().message();
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(Floats(8192)[i], Floats(0)[i] * Floats(4096)[i]) << i;
}

TEST_F(CpuWorkerTest, BytesAreZeroedAndCopied) {
  FillInputs();
  wire::Task copy, zero;
  copy.mutable_copy_bytes()->set_from_arena(kArena);
  copy.mutable_copy_bytes()->set_to_arena(kArena);
  copy.mutable_copy_bytes()->set_to_offset(8192);
  copy.mutable_copy_bytes()->set_size(4 * kCount);
  EXPECT_EQ(Run(copy).status().code(), 0);
  EXPECT_EQ(std::memcmp(Floats(8192), Floats(0), 4 * kCount), 0);
  zero.mutable_zero_fill()->set_arena(kArena);
  zero.mutable_zero_fill()->set_offset(8196);
  zero.mutable_zero_fill()->set_size(8);
  EXPECT_EQ(Run(zero).status().code(), 0);
  EXPECT_EQ(Floats(8192)[1], 0);
  EXPECT_EQ(Floats(8192)[2], 0);
  EXPECT_EQ(Floats(8192)[3], 3);
  zero.mutable_zero_fill()->set_size(kArenaBytes);
  EXPECT_EQ(Run(zero).status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument))
      << "out of bounds";
  EXPECT_TRUE(worker_->alive());
}

TEST_F(CpuWorkerTest, CopiesMoveStagingBytes) {
  StagingPool::Slot slot = worker_->staging().TryAcquire();
  std::memcpy(slot.data, "hello", 5);
  auto done = [r = recorder_](absl::Status status) { r->copy_done()(std::move(status)); };
  worker_->Copy(true, kArena, 77, slot.offset, 5, done);
  ASSERT_TRUE(recorder_->WaitForCopies(1)[0].ok());
  EXPECT_EQ(std::memcmp(arena_.data() + 77, "hello", 5), 0);
  worker_->Copy(false, kArena, 79, slot.offset + 100, 3, done);
  ASSERT_TRUE(recorder_->WaitForCopies(2)[1].ok());
  EXPECT_EQ(std::memcmp(slot.data + 100, "llo", 3), 0);
  worker_->Copy(true, kArena, kArenaBytes - 2, slot.offset, 5, done);
  EXPECT_FALSE(recorder_->WaitForCopies(3)[2].ok());
  worker_->Copy(true, kArena, 0, ~uint64_t{0}, 5, done);
  EXPECT_FALSE(recorder_->WaitForCopies(4)[3].ok());
}

TEST_F(CpuWorkerTest, InvalidLaunchesFailTheirTasks) {
  wire::Task no_such = Kernel("nothing");
  EXPECT_EQ(Run(no_such).status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  wire::Task few = Kernel("add");
  EXPECT_THAT(Run(few).status().message(), HasSubstr("takes 4 arguments"));
  wire::Task large = Add();
  large.mutable_kernel()->set_block(0, 4096);
  EXPECT_NE(Run(large).status().code(), 0);
  wire::Task wrong_size = Add();
  wrong_size.mutable_kernel()->mutable_arguments(3)->set_raw("12345678");
  EXPECT_EQ(Run(wrong_size).status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  wire::Task outside = Add();
  outside.mutable_kernel()->mutable_arguments(0)->mutable_array()->set_offset(kArenaBytes + 1);
  EXPECT_NE(Run(outside).status().code(), 0);
  EXPECT_TRUE(worker_->alive());
}

TEST_F(CpuWorkerTest, AssertFailsOnlyItsTask) {
  FillInputs();
  wire::TaskResult result = Run(OnArray("refuse"));
  EXPECT_EQ(result.status().code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(result.status().message(), HasSubstr("refuse"));
  EXPECT_EQ(Run(Add()).status().code(), 0);
  CheckSum();
}

TEST_F(CpuWorkerTest, FaultsAreReportedAndArraysSurvive) {
  wire::Task divide = OnArray("divide");
  AddInt(divide.mutable_kernel(), 0);
  const std::pair<wire::Task, std::string> cases[] = {
      {OnArray("overrun"),
       "illegal memory access by kernel overrun, block (0, 0, 0): at byte 4294967296 of array "
       "argument 0 (write)"},
      {OnArray("null"),
       "illegal memory access by kernel null, block (0, 0, 0): through a null pointer (write)"},
      {divide, "integer division by zero by kernel divide"}};
  for (const auto& [task, text] : cases) {
    FillInputs();
    ASSERT_EQ(Run(Add()).status().code(), 0);
    std::memset(Floats(0), 0, 16);
    Submit(task);
    auto death = recorder_->WaitForDeath();
    ASSERT_TRUE(death.has_value());
    EXPECT_THAT(std::string(death->cause.message()), HasSubstr(text));
    EXPECT_EQ(ReasonOf(death->cause), v1::ERROR_REASON_KERNEL_FAULT);
    EXPECT_EQ(death->faulting_sequence, sequence_);
    EXPECT_EQ(death->completed_sequence, sequence_ - 1);
    CheckSum();
    StartWorker();
    FillInputs();
    std::memset(Floats(8192), 0, 4 * kCount);
    EXPECT_EQ(Run(Add()).status().code(), 0);
    CheckSum();
  }
}

TEST_F(CpuWorkerTest, KillDuringKernelLosesOnlyItsTask) {
  FillInputs();
  ASSERT_EQ(Run(Add()).status().code(), 0);
  Submit(OnArray("endless"));
  Submit(Add());
  // The third task is queued after the endless one: the kill may come at any time.
  kill(worker_->pid(), SIGKILL);
  auto death = recorder_->WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_EQ(ReasonOf(death->cause), v1::ERROR_REASON_WORKER_LOST);
  EXPECT_EQ(death->faulting_sequence, 0u);
  EXPECT_EQ(death->completed_sequence, 1u);
  CheckSum();
  StartWorker();
  std::memset(Floats(8192), 0, 4 * kCount);
  EXPECT_EQ(Run(Add()).status().code(), 0);
  CheckSum();
}

TEST_F(CpuWorkerTest, ShutdownFinishesTheQueue) {
  FillInputs();
  for (int i = 0; i < 50; ++i) Submit(Add());
  worker_->Shutdown();
  auto death = recorder_->WaitForDeath();
  ASSERT_TRUE(death.has_value());
  EXPECT_TRUE(death->cause.ok()) << death->cause;
  EXPECT_EQ(recorder_->WaitForResults(50).size(), 50u);
  CheckSum();
}

// Forty doublings of a macro: at least ten seconds of preprocessing.
std::string MacroBomb() {
  std::string source = "#define M0 x +\n";
  for (int i = 1; i <= 40; ++i) {
    absl::StrAppend(&source, "#define M", i, " M", i - 1, " M", i - 1, "\n");
  }
  return source + "extern \"C\" __global__ void k(int* y) { int x = 1; y[0] = M40 0; }\n";
}

wire::Code CodeOf(const std::string& source) {
  wire::Code code;
  code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
  code.mutable_source()->set_text(source);
  return code;
}

TEST_F(CpuWorkerTest, CompilersAreBoundedInTimeAndMemory) {
  const std::string executable = std::string(CPU_WORKERS) + "/stride-worker-cpu";
  const std::string target = broker_->devices()[0].target();
  Spawner spawner(WorkerEnvironment());
  struct {
    uint64_t memory;
    absl::Duration processor_time, patience;
    CompilerDeath death;
  } const cases[] = {
      {uint64_t{8} << 30, absl::Seconds(1), absl::Seconds(100), CompilerDeath::kTime},
      {uint64_t{8} << 30, absl::Seconds(100), absl::Milliseconds(700), CompilerDeath::kTime},
      {uint64_t{400} << 20, absl::Seconds(100), absl::Seconds(100), CompilerDeath::kMemory},
  };
  for (const auto& c : cases) {
#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
    if (c.death == CompilerDeath::kMemory) continue;  // and no limits either
#endif
    SandboxPolicy policy;
    policy.compile_memory_bytes = c.memory;
    policy.compile_processor_time = c.processor_time;
    auto process = CompilerProcess::Start(executable, policy, &spawner);
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_TRUE((*process)->Compile(target, SerializeCode(CodeOf(kSource)), c.patience).ok() ||
                c.patience < absl::Seconds(1));
    auto output = (*process)->Compile(target, SerializeCode(CodeOf(MacroBomb())), c.patience);
    EXPECT_FALSE(output.ok());
    EXPECT_EQ((*process)->death(), c.death) << output.status();
    EXPECT_FALSE((*process)->usable());
  }
}

}  // namespace
}  // namespace stride::broker
