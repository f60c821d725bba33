// Random kernels, compiled and run by the CPU device, compared with an interpreter that shares no
// code with the compiler: every byte must agree.
//
// Environment: STRIDE_FUZZ_KERNELS kernels of each kind, STRIDE_FUZZ_SEED the first seed. A failure
// prints its seed N; STRIDE_FUZZ_SEED=N STRIDE_FUZZ_KERNELS=1 runs only that kernel.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "cpucuda/cpucuda.h"
#include "tests/fuzz/kernels/generator.h"
#include "tests/fuzz/kernels/interpreter.h"
#include "tests/fuzz/kernels/scalar.h"
#include "tests/fuzz/kernels/text.h"

namespace stride::cpucuda::fuzz {
namespace {

constexpr int kKernelsInSource = 12;
constexpr int kLaunches = 2;
constexpr int kSecondsForKernel = 60;

// The kernel that runs now, for the handler of a crash or of a kernel that does not end.
char running[256];

void OnSignal(int signal) {
  ssize_t ignored = write(2, running, __builtin_strlen(running));
  (void)ignored;
  ::signal(signal, SIG_DFL);
  raise(signal);
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

struct Parameters {
  int32_t* out;
  float* real;
  int32_t* acc;
  int32_t* gx;
  const int32_t* in;
  const float* fin;
  int32_t n;
  uint32_t p;
  float q;
};

LaunchConfig Shape(const Program& program, std::mt19937_64& random) {
  auto pick = [&](std::initializer_list<uint32_t> from) {
    return from.begin()[random() % from.size()];
  };
  LaunchConfig launch;
  const auto most = static_cast<uint32_t>(program.shared_size);
  if (program.flat) {
    launch.block.x = pick({1, 7, 31, 32, 33, 64, 96, 100, 128, 200, 256});
    if (most == 1024) launch.block.x = pick({256, 511, 1024});
    launch.grid.x = pick({1, 2, 3, 5});
  } else {
    launch.block = {pick({1, 3, 8, 16, 32}), pick({1, 2, 5, 8}), pick({1, 1, 2, 3})};
    while (launch.block.x * launch.block.y * launch.block.z > most) --launch.block.y;
    launch.grid = {pick({1, 2, 3}), pick({1, 2}), pick({1, 2})};
  }
  for (const SharedArray& array : program.shared) {
    if (array.where == SharedArray::Where::kDynamic)
      launch.dynamic_shared_bytes = static_cast<uint32_t>(program.shared_size * SizeOf(array.type));
  }
  return launch;
}

struct Inputs {
  std::vector<int32_t> in = std::vector<int32_t>(kInputSize);
  std::vector<float> fin = std::vector<float>(kInputSize);
  Inputs() {
    std::mt19937_64 random(3);
    for (int32_t& x : in) {
      x = static_cast<int32_t>(random() % 8 == 0 ? random() : random() % 1000);
    }
    for (float& x : fin) x = static_cast<float>(static_cast<int>(random() % 65536) - 32768) / 64;
  }
};

Memory MakeMemory(const Program& program, const LaunchConfig& launch, const Inputs& inputs,
                  std::mt19937_64& random) {
  const size_t blocks = size_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const size_t threads = blocks * launch.block.x * launch.block.y * launch.block.z;
  Memory memory;
  memory.out.assign((kNumOwn + 1) * threads, -1);
  memory.real.assign(kNumOwn * threads, 0.5f);
  memory.acc.assign(kNumAccumulators, 12345);
  memory.gx.assign(blocks * program.shared_size, 0);
  memory.in = &inputs.in;
  memory.fin = &inputs.fin;
  memory.p = static_cast<uint32_t>(random() % 100);
  memory.q = static_cast<float>(static_cast<int>(random() % 200)) / 8 - 10;
  return memory;
}

std::string Difference(const Memory& got, const Memory& want) {
  auto integers = [](const char* name, const auto& a, const auto& b) -> std::string {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i])
        return absl::StrCat(name, "[", i, "] of ", a.size(), " is ", a[i], " and should be ", b[i]);
    }
    return "";
  };
  std::string text = integers("out", got.out, want.out);
  if (text.empty()) text = integers("acc", got.acc, want.acc);
  if (text.empty()) text = integers("gx", got.gx, want.gx);
  for (size_t i = 0; text.empty() && i < got.real.size(); ++i) {
    const bool same = std::bit_cast<uint32_t>(got.real[i]) == std::bit_cast<uint32_t>(want.real[i]);
    if (!same && !(std::isnan(got.real[i]) && std::isnan(want.real[i])))
      text = absl::StrCat("fout[", i, "] is ", got.real[i], " and should be ", want.real[i]);
  }
  return text;
}

std::string Describe(const LaunchConfig& launch, const Memory& memory) {
  auto dim = [](const Dim3& d) { return absl::StrCat("(", d.x, ",", d.y, ",", d.z, ")"); };
  return absl::StrCat("grid ", dim(launch.grid), " block ", dim(launch.block), " dynamic shared ",
                      launch.dynamic_shared_bytes, " p ", memory.p, " q ", memory.q);
}

class Fuzz {
 public:
  Fuzz(std::optional<ThreadForm> form, Flavour flavour) : form_(form), flavour_(flavour) {}

  void Run(uint64_t first, uint64_t count) {
    for (int signal : {SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGALRM}) ::signal(signal, OnSignal);
    for (uint64_t done = 0; done < count; done += kKernelsInSource) {
      std::vector<Program> batch;
      for (uint64_t i = done; i < std::min(count, done + kKernelsInSource); ++i)
        batch.push_back(Generate(first + i, flavour_));
      CompileAndRun(batch);
    }
    alarm(0);
    std::printf("%d kernels, %d launches agree; %d refused\n", ran_, launches_, refused_);
    // Refusals are allowed, but must not be the majority.
    EXPECT_LT(refused_ * 10, ran_ + refused_ + 10);
  }

 private:
  void CompileAndRun(const std::vector<Program>& batch) {
    const uint64_t first = batch[0].seed;
    std::snprintf(running, sizeof(running), "\nwhile compiling kernels from seed %llu on\n",
                  static_cast<unsigned long long>(first));
    alarm(kSecondsForKernel * static_cast<unsigned>(batch.size()));
    CompileRequest request{.source = CommonText(), .form = form_};
    for (const Program& program : batch) request.source += KernelText(program);
    // No contraction, so that floats have one correct result. Other optimisations produce other
    // code.
    const char* levels[] = {"-O3", "-O3", "-O2", "-O1"};
    request.options = {"--fmad=false", levels[first / kKernelsInSource % 4]};
    if (first / kKernelsInSource % 5 == 4) request.cpu = "x86-64-v3";
    absl::StatusOr<CompileResult> result = Compile(request);
    if (!result.ok() && batch.size() > 1) {
      for (const Program& program : batch) CompileAndRun({program});
      return;
    }
    if (absl::IsUnimplemented(result.status())) {
      ++refused_;
      if (std::getenv("STRIDE_FUZZ_VERBOSE") != nullptr)
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(first),
                    result.status().ToString().c_str());
      return;
    }
    if (!result.ok()) {
      ADD_FAILURE() << "seed " << first << ": " << result.status() << "\n" << request.source;
      return;
    }
    auto module = Module::LoadBytes(result->object);
    ASSERT_TRUE(module.ok()) << module.status();
    for (const Program& program : batch) RunOne(program, *result, **module);
  }

  void RunOne(const Program& program, const CompileResult& compiled, const Module& module) {
    for (const CompiledKernel& kernel : compiled.kernels) {
      if (kernel.name != KernelName(program)) continue;
      // The compiler uses fibers when the loop form fails; a bug of the pass must not be hidden by
      // that.
      if (kernel.form_reason.find("the kernel pass made wrong code") != std::string::npos ||
          kernel.form_reason.find("the compiler failed") != std::string::npos) {
        ADD_FAILURE() << "seed " << program.seed
                      << ", or one compiled with it: " << kernel.form_reason;
      }
      KernelEntry entry{.name = kernel.name,
                        .function = module.Symbol(kernel.symbol),
                        .static_shared_bytes = kernel.static_shared_bytes,
                        .max_threads_per_block = kernel.max_threads_per_block,
                        .private_bytes_per_thread = kernel.private_bytes_per_thread,
                        .per_thread = kernel.form == ThreadForm::kPerThread};
      ++ran_;
      std::mt19937_64 random(program.seed);
      for (int i = 0; i < kLaunches; ++i) {
        if (!Agrees(program, entry, random)) return;
        ++launches_;
      }
      return;
    }
    ADD_FAILURE() << "no kernel of seed " << program.seed;
  }

  bool Agrees(const Program& program, const KernelEntry& entry, std::mt19937_64& random) {
    LaunchConfig launch = Shape(program, random);
    Memory want = MakeMemory(program, launch, inputs_, random);
    Memory got = want;
    const std::string where = absl::StrCat("seed ", program.seed, ", ", Describe(launch, want));
    std::snprintf(running, sizeof(running), "\nwhile running %s\n", where.c_str());
    alarm(kSecondsForKernel);
    const std::string problem = Interpret(program, launch, want);
    if (!problem.empty()) {
      ADD_FAILURE() << "the generator made a wrong program: " << problem << "; " << where << "\n"
                    << KernelText(program);
      return false;
    }
    Parameters parameters{got.out.data(),
                          got.real.data(),
                          got.acc.data(),
                          got.gx.data(),
                          got.in->data(),
                          got.fin->data(),
                          static_cast<int32_t>(got.out.size() / (kNumOwn + 1)),
                          got.p,
                          got.q};
    absl::Status status = Launch(pool_, entry, launch, &parameters, nullptr);
    const std::string difference = status.ok() ? Difference(got, want) : status.ToString();
    EXPECT_EQ(difference, "") << where << "\n" << CommonText() << KernelText(program);
    return difference.empty();
  }

  const std::optional<ThreadForm> form_;
  const Flavour flavour_;
  const Inputs inputs_;
  ThreadPool pool_{2};
  int ran_ = 0, launches_ = 0, refused_ = 0;
};

uint64_t FirstSeed() { return FromEnvironment("STRIDE_FUZZ_SEED", 1); }

TEST(KernelFuzz, RandomKernelsAsLoops) {
  Fuzz(ThreadForm::kLoops, Flavour::kBlock)
      .Run(FirstSeed(), FromEnvironment("STRIDE_FUZZ_KERNELS", 24));
}

TEST(KernelFuzz, RandomKernelsAsFibers) {
  Fuzz(ThreadForm::kPerThread, Flavour::kBlock)
      .Run(FirstSeed(), FromEnvironment("STRIDE_FUZZ_KERNELS", 24));
}

// Loops if the whole block converges, else fibers.
TEST(KernelFuzz, RandomKernelsWithWarpOperations) {
  Fuzz(std::nullopt, Flavour::kWarp).Run(FirstSeed(), FromEnvironment("STRIDE_FUZZ_KERNELS", 24));
}

}  // namespace
}  // namespace stride::cpucuda::fuzz
