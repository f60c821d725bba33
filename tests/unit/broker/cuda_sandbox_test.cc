// The CUDA worker and NVRTC inside the complete sandbox. Compilation needs only NVRTC, the other
// tests need a GPU:
// ctest -L gpu -R sandbox
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/environment.h"
#include "server/broker/broker.h"
#include "server/broker/compiler_process.h"
#include "server/broker/content_key.h"
#include "tests/support/await.h"
#include "tests/unit/broker/recorder.h"

namespace stride::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSource[] = R"(
#include <cuda_fp16.h>
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
)";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

wire::Code CodeOf(const std::string& source) {
  wire::Code code;
  code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
  code.mutable_source()->set_text(source);
  return code;
}

// In the same folder if both were packed together, else where they were built.
std::string Workers() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return std::filesystem::exists(folder / "stride-worker-cuda", error) ? folder.string()
                                                                       : std::string(CUDA_WORKERS);
}

absl::StatusOr<CompilerProcess::Output> CompileAlone(Spawner* spawner, const SandboxPolicy& policy,
                                                     const std::string& source,
                                                     absl::Duration timeout = absl::Seconds(60)) {
  auto process = CompilerProcess::Start(Workers() + "/stride-worker-cuda", policy, spawner);
  if (!process.ok()) return process.status();
  return (*process)->Compile("cuda:sm_90", SerializeCode(CodeOf(source)), timeout);
}

class NvrtcSandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    policy_.mode = SandboxPolicy::Mode::kOff;
    absl::Status status = CompileAlone(&spawner_, policy_, kSource).status();
    if (!status.ok()) GTEST_SKIP() << "NVRTC does not work here: " << status;
    policy_.mode = SandboxPolicy::Mode::kRequire;
  }
  Spawner spawner_{WorkerEnvironment()};
  SandboxPolicy policy_;
};

TEST_F(NvrtcSandboxTest, CompilesWithTheToolkitsHeaders) {
  auto output = CompileAlone(&spawner_, policy_, kSource);
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->reply.description().kernels(0).entry(), "add");
}

TEST_F(NvrtcSandboxTest, ReadsNoFileOfTheMachine) {
  for (const char* include :
       {"#include \"/etc/passwd\"\n", "#define F \"/etc/passwd\"\n#include F\n",
        "#include \"/proc/self/environ\"\n", "#inc\\\nlude \"/etc/passwd\"\n",
        "_Pragma(\"GCC dependency \\\"/etc/passwd\\\"\")\n#error end\n",
        "#embed \"/etc/passwd\"\n"}) {
    SCOPED_TRACE(include);
    auto output = CompileAlone(&spawner_, policy_, std::string(include) + kSource);
    ASSERT_FALSE(output.ok());
    EXPECT_THAT(std::string(output.status().message()), Not(HasSubstr("root:")));
    EXPECT_THAT(std::string(output.status().message()), Not(HasSubstr("PATH=")));
  }
}

TEST_F(NvrtcSandboxTest, CompileBombsAreBounded) {
  policy_.compile_memory_bytes = 1 << 30;
  const std::string tree =
      "template <int N, long long M> struct Tree { static const int value = Tree<N - 1, 2 * "
      "M>::value + Tree<N - 1, 2 * M + 1>::value; };\n"
      "template <long long M> struct Tree<0, M> { static const int value = M & 1; };\n"
      "__device__ int x = Tree<22, 1>::value;\n";
  for (const std::string& source : {tree, std::string("#include __FILE__\n"),
                                    "__device__ int x = " + std::string(100000, '(') + "1;\n"}) {
    SteadyTime begin = Now();
    auto output = CompileAlone(&spawner_, policy_, source + kSource, absl::Seconds(30));
    ASSERT_FALSE(output.ok());
    std::printf("%.1f s: %s\n", absl::ToDoubleSeconds(Now() - begin),
                std::string(output.status().message().substr(0, 150)).c_str());
    // The limit is processor time: a busy machine takes a multiple of it.
    EXPECT_LT(Now() - begin, absl::Seconds(300));
  }
}

class CudaSandboxTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Broker> MakeBroker(SandboxPolicy::Mode mode) {
    BrokerOptions options;
    options.worker_directory = Workers();
    options.num_spares = 0;
    options.sandbox.mode = mode;
    options.log = [](const std::string& line) { std::printf("worker: %s\n", line.c_str()); };
    auto broker = Broker::Create(options);
    EXPECT_TRUE(broker.ok()) << broker.status();
    return broker.ok() ? *std::move(broker) : nullptr;
  }

  static std::shared_ptr<const CompiledModule> Compile(Broker& broker) {
    std::shared_ptr<const CompiledModule> module;
    absl::Notification done;
    broker.compiler().Compile(TenantId{"t"}, broker.devices()[0].target(), CodeOf(kSource),
                              [&](absl::StatusOr<std::shared_ptr<const CompiledModule>> result) {
                                EXPECT_TRUE(result.ok()) << result.status();
                                if (result.ok()) module = *result;
                                done.Notify();
                              });
    AWAIT(done.HasBeenNotified());
    return module;
  }
};

// From the device list through arenas, pinned copies and a kernel to the result.
TEST_F(CudaSandboxTest, WholePathWorksInside) {
  auto broker = MakeBroker(SandboxPolicy::Mode::kRequire);
  ASSERT_NE(broker, nullptr);
  for (const std::string& note : broker->notes()) std::printf("%s\n", note.c_str());
  if (broker->devices()[0].kind() != "cuda") GTEST_SKIP() << "no device of kind cuda here";
  auto module = Compile(*broker);
  ASSERT_NE(module, nullptr);
  auto started = broker->StartWorker(0);
  ASSERT_TRUE(started.ok()) << started.status();
  auto recorder = std::make_shared<JournalWriter>();
  WorkerCallbacks callbacks = recorder->callbacks();
  std::shared_ptr<Worker> worker = *started;
  worker->Adopt({.tasks_done = [recorder, f = callbacks.tasks_done](auto results) { f(results); },
                 .died = [recorder, f = callbacks.died](auto& death) { f(death); }});

  constexpr uint64_t kArenaBytes = 2 << 20;
  auto arena = worker->CreateArena(1, kArenaBytes);
  ASSERT_TRUE(arena.ok()) << arena.status();
  StagingPool::Slot slot = worker->staging().TryAcquire();
  auto* numbers = reinterpret_cast<float*>(slot.data);
  for (int i = 0; i < 2000; ++i) numbers[i] = static_cast<float>(i);
  worker->Copy(true, 1, 0, slot.offset, 8000, recorder->copy_done());
  ASSERT_TRUE(recorder->WaitForCopies(1)[0].ok());
  ASSERT_TRUE(worker
                  ->LoadModule(*module,
                               [](absl::StatusOr<wire::ModuleLoaded> loaded) {
                                 EXPECT_TRUE(loaded.ok()) << loaded.status();
                               })
                  .ok());
  wire::Task task;
  task.set_sequence(1);
  auto* launch = task.mutable_kernel();
  launch->set_module(module->id);
  launch->set_entry("add");
  for (uint32_t extent : {8u, 1u, 1u}) launch->add_grid(extent);
  for (uint32_t extent : {128u, 1u, 1u}) launch->add_block(extent);
  for (uint64_t offset : {0, 4000, 8192}) {
    launch->add_arguments()->mutable_array()->set_arena(1);
    launch->mutable_arguments()->rbegin()->mutable_array()->set_offset(offset);
  }
  const int count = 1000;
  launch->add_arguments()->set_raw(std::string(reinterpret_cast<const char*>(&count), 4));
  wire::TaskPacket packet;
  packet.Add(task);
  ASSERT_TRUE(worker->Submit(packet).ok());
  auto results = recorder->WaitForResults(1);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status().code(), 0) << results[0].status().message();
  worker->Copy(false, 1, 8192, slot.offset, 4000, recorder->copy_done());
  ASSERT_TRUE(recorder->WaitForCopies(2)[1].ok());
  for (int i = 0; i < count; ++i) ASSERT_EQ(numbers[i], static_cast<float>(2 * i + 1000)) << i;

  const std::string status = ReadFile(absl::StrCat("/proc/", worker->pid(), "/status"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapBnd:\t0000000000000000"));
}

// Printed, not checked: a machine's noise exceeds the cost of the sandbox.
TEST_F(CudaSandboxTest, StartTimeWithAndWithout) {
  for (auto mode : {SandboxPolicy::Mode::kOff, SandboxPolicy::Mode::kTry}) {
    auto broker = MakeBroker(mode);
    ASSERT_NE(broker, nullptr);
    absl::Duration best = absl::InfiniteDuration();
    for (int i = 0; i < 5; ++i) {
      SteadyTime begin = Now();
      ASSERT_TRUE(broker->StartWorker(0).ok());
      best = std::min(best, Now() - begin);
    }
    std::printf("%s: worker ready in %.1f ms (best of 5)\n",
                mode == SandboxPolicy::Mode::kOff ? "no sandbox" : "sandbox",
                absl::ToDoubleMilliseconds(best));
  }
}

}  // namespace
}  // namespace stride::broker
