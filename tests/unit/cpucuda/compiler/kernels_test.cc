// CUDA kernels through the pass, compared with the per-thread reference and with results computed
// here.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cpucuda/compiler/compiler.h"
#include "cpucuda/runtime/launch.h"
#include "cpucuda/runtime/module.h"
#include "tests/unit/cpucuda/compiler/build_kernel.h"
#include "tests/unit/cpucuda/compiler/kernel_corpus.h"

namespace stride::cpucuda {
namespace {

struct Arguments {
  int* out;
  const int* in;
  int n;
};

constexpr LaunchConfig kShapes[] = {
    {{1, 1, 1}, {32, 1, 1}, 4096},  {{4, 1, 1}, {64, 1, 1}, 4096},   {{3, 1, 1}, {100, 1, 1}, 4096},
    {{2, 1, 1}, {256, 1, 1}, 4096}, {{5, 1, 1}, {1, 1, 1}, 4096},    {{1, 2, 1}, {16, 8, 1}, 4096},
    {{2, 1, 1}, {8, 4, 2}, 4096},   {{1, 1, 1}, {1024, 1, 1}, 4096}, {{7, 1, 1}, {33, 1, 1}, 4096},
    {{3, 1, 1}, {128, 1, 1}, 4096}, {{2, 2, 1}, {32, 4, 1}, 4096},
};

std::vector<int> Inputs() {
  std::mt19937 random(11);
  std::vector<int> in(4096);
  for (int& value : in) value = static_cast<int>(random() % 1000);
  return in;
}

class Corpus : public testing::TestWithParam<CorpusKernel> {};

// Kernels that index shared memory only by threadIdx.x race with themselves in blocks of more
// dimensions.
bool IsFlat(const LaunchConfig& shape) {
  return shape.block.y == 1 && shape.block.z == 1 && shape.grid.y == 1;
}
bool WantsFlat(const std::string& name) {
  return name != "three_dimensions" && name != "naive_matmul";
}

TEST_P(Corpus, AgreesWithOneFiberPerThread) {
  const CorpusKernel& kernel = GetParam();
  Loaded loops = Build(kernel.source, ThreadForm::kLoops),
         threads = Build(kernel.source, ThreadForm::kPerThread);
  if (absl::IsUnimplemented(loops.status)) {
    loops = Build(kernel.source);
    EXPECT_EQ(loops.compiled.form, ThreadForm::kPerThread);
  }
  ASSERT_TRUE(loops.status.ok()) << loops.status;
  ASSERT_TRUE(threads.status.ok()) << threads.status;
  ASSERT_NE(loops.entry.function, nullptr);
  ThreadPool pool(2);
  std::vector<int> in = Inputs();
  for (const LaunchConfig& shape : kShapes) {
    if (WantsFlat(kernel.name) && !IsFlat(shape)) continue;
    for (int n : {1, 63, 200, 300, 2000}) {
      std::vector<int> got(4096, 12345), want(4096, 12345);
      Arguments arguments{got.data(), in.data(), n};
      absl::Status status = Launch(pool, loops.entry, shape, &arguments, nullptr);
      ASSERT_TRUE(status.ok()) << status;
      arguments.out = want.data();
      ASSERT_TRUE(Launch(pool, threads.entry, shape, &arguments, nullptr).ok());
      for (int i = 0; i < 4096; ++i) {
        ASSERT_EQ(got[i], want[i])
            << kernel.name << " element " << i << " of " << n << ", block " << shape.block.x
            << " x " << shape.block.y << " x " << shape.block.z << ", grid " << shape.grid.x;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Corpus, testing::ValuesIn(kCorpus),
                         [](const auto& info) { return std::string(info.param.name); });

std::vector<int> RunCorpus(const std::string& name, LaunchConfig shape, int n) {
  for (const CorpusKernel& kernel : kCorpus) {
    if (name != kernel.name) continue;
    Loaded loaded = Build(kernel.source);
    EXPECT_TRUE(loaded.status.ok()) << loaded.status;
    std::vector<int> in = Inputs(), out(4096, 0);
    if (!loaded.status.ok()) return out;
    ThreadPool pool(1);
    Arguments arguments{out.data(), in.data(), n};
    EXPECT_TRUE(Launch(pool, loaded.entry, shape, &arguments, nullptr).ok());
    return out;
  }
  ADD_FAILURE() << "no kernel " << name;
  return {};
}

TEST(Kernels, ReductionIsTheSum) {
  std::vector<int> in = Inputs();
  for (const char* name : {"block_reduce", "two_level_reduce", "dynamic_shared_reduce"}) {
    std::vector<int> out = RunCorpus(name, {{1, 1, 1}, {256, 1, 1}, 4096}, 256);
    int sum = 0;
    for (int i = 0; i < 256; ++i) sum += in[i];
    EXPECT_EQ(out[0], sum) << name;
  }
}

TEST(Kernels, ScanIsTheRunningSum) {
  std::vector<int> in = Inputs(), out = RunCorpus("inclusive_scan", {{1, 1, 1}, {512, 1, 1}}, 500);
  int sum = 0;
  for (int i = 0; i < 500; ++i) ASSERT_EQ(out[i], sum += in[i]);
}

TEST(Kernels, MatrixProducts) {
  std::vector<int> in = Inputs();
  std::vector<int> out = RunCorpus("naive_matmul", {{2, 3, 1}, {16, 8, 1}}, 0);
  for (int row = 0; row < 24; ++row) {
    for (int column = 0; column < 24; ++column) {
      int sum = 0;
      for (int j = 0; j < 24; ++j) sum += in[row * 24 + j] * in[j * 24 + column];
      ASSERT_EQ(out[row * 24 + column], sum);
    }
  }
}

TEST(Kernels, VotesCoverTheWarp) {
  std::vector<int> in = Inputs(), out = RunCorpus("votes", {{1, 1, 1}, {64, 1, 1}}, 64);
  for (int warp = 0; warp < 2; ++warp) {
    unsigned ballot = 0;
    bool any = false;
    for (int lane = 0; lane < 32; ++lane) {
      ballot |= (in[warp * 32 + lane] & 1u) << lane;
      any = any || in[warp * 32 + lane] > 900;
    }
    EXPECT_EQ(static_cast<unsigned>(out[warp * 32 + 5]), ballot ^ (unsigned{any} << 3) ^ (1u << 5));
  }
}

TEST(Kernels, ShufflesReadTheSourceLane) {
  std::vector<int> in = Inputs(), out = RunCorpus("shuffles", {{1, 1, 1}, {64, 1, 1}}, 64);
  for (int i = 0; i < 64; ++i) {
    int warp = i & ~31, lane = i & 31;
    int a = in[warp + 3], b = in[(lane & 7) < 2 ? i : i - 2],
        c = in[(lane & 15) + 5 >= 16 ? i : i + 5];
    int d = in[(i & ~3) + ((lane + 1) & 3)], e = in[i ^ 1];
    ASSERT_EQ(out[i], a + 3 * b + 5 * c + 7 * d + 11 * e) << i;
  }
  out = RunCorpus("warp_shuffle_reduce", {{1, 1, 1}, {64, 1, 1}}, 64);
  int sum = 0;
  for (int i = 0; i < 32; ++i) sum += in[i];
  for (int i = 0; i < 32; ++i) ASSERT_EQ(out[i], sum) << i;
}

TEST(Kernels, WarpOperationsOfTheWholeBlockAreLoops) {
  auto form = [](const std::string& name) {
    for (const CorpusKernel& kernel : kCorpus) {
      if (name == kernel.name) return Build(kernel.source).compiled.form;
    }
    ADD_FAILURE() << "no kernel " << name;
    return ThreadForm::kPerThread;
  };
  for (const char* name : {"warp_shuffle_reduce", "shuffles", "votes"})
    EXPECT_EQ(form(name), ThreadForm::kLoops) << name;
  for (const char* name : {"divergent_shuffle", "ballot_in_branch", "divergent_loop_of_shuffles"})
    EXPECT_EQ(form(name), ThreadForm::kPerThread) << name;
}

// A shuffle in a loop: no thread may write the next round's value before all have read this
// round's.
TEST(Kernels, ShufflesInLoopsKeepTheirRounds) {
  std::vector<int> in = Inputs(),
                   out = RunCorpus("divergent_loop_of_shuffles", {{1, 1, 1}, {96, 1, 1}}, 96);
  for (int i = 0; i < 96; ++i) {
    int want = 0;
    for (int r = 0; r < (i / 32 + 1) * 2; ++r) want += in[(i & ~31) + r] + r;
    ASSERT_EQ(out[i], want) << i;
  }
}

TEST(Kernels, AssertEndsALaunchOfFibers) {
  Loaded loaded = Build(
      "__global__ void k(int n) {\n  int v = __shfl_sync(~0u, n, 0);\n  assert(threadIdx.x != 35 "
      "|| v > 2);\n  __syncthreads();\n}",
      ThreadForm::kPerThread);
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  ASSERT_EQ(loaded.compiled.form, ThreadForm::kPerThread);
  int n = 2;
  ThreadPool pool(2);
  absl::Status status = Launch(pool, loaded.entry, {{3, 1, 1}, {64, 1, 1}}, &n, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_NE(std::string(status.message()).find("thread (35, 0, 0)"), std::string::npos) << status;
  n = 5;
  EXPECT_TRUE(Launch(pool, loaded.entry, {{3, 1, 1}, {64, 1, 1}}, &n, nullptr).ok());
}

TEST(Kernels, ParametersAreDescribed) {
  Loaded loaded = Build(
      "struct Size { int w; double h; };\n"
      "template <class T> __global__ void __launch_bounds__(128) scale(T* out, const T* "
      "__restrict__ in, T factor, Size size, unsigned char flag) "
      "{ out[threadIdx.x] = in[threadIdx.x] * factor + size.w + flag; }",
      {}, {"scale<float>"});
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  const auto& parameters = loaded.compiled.parameters;
  ASSERT_EQ(parameters.size(), 5u);
  EXPECT_EQ(loaded.compiled.name, "scale<float>");
  EXPECT_EQ(loaded.compiled.max_threads_per_block, 128u);
  EXPECT_EQ(parameters[0].type, "float*");
  EXPECT_EQ(parameters[0].pointee, "float");
  EXPECT_FALSE(parameters[0].pointee_const);
  EXPECT_TRUE(parameters[1].pointee_const);
  EXPECT_EQ(parameters[2].kind, KernelParameter::Kind::kFloat);
  EXPECT_EQ(parameters[2].offset, 16u);
  EXPECT_EQ(parameters[3].kind, KernelParameter::Kind::kAggregate);
  EXPECT_EQ(parameters[3].offset, 24u);
  EXPECT_EQ(parameters[4].offset, 40u);
  EXPECT_FALSE(parameters[4].is_signed);
}

constexpr char kSharedOfSeveral[] = R"(
__device__ int turned(int v) {
  __shared__ int around[32];
  around[threadIdx.x] = v;
  __syncthreads();
  return around[blockDim.x - 1 - threadIdx.x];
}
__global__ void none(int* out) { out[threadIdx.x] = 1; }
__global__ void first(int* out) {
  __shared__ double wide[32];
  wide[threadIdx.x] = threadIdx.x * 2;
  __syncthreads();
  out[threadIdx.x] = (int)wide[blockDim.x - 1 - threadIdx.x];
}
__global__ void both(int* out) {
  __shared__ char small[40];
  small[threadIdx.x] = threadIdx.x * 3;
  out[threadIdx.x] = turned(threadIdx.x) + small[blockDim.x - 1 - threadIdx.x];
}
__global__ void borrowed(int* out) { out[threadIdx.x] = turned(threadIdx.x * 5); }
__global__ void dynamic(int* out) {
  __shared__ int one[3];
  extern __shared__ int many[];
  many[threadIdx.x] = threadIdx.x * 7;
  if (threadIdx.x < 3) one[threadIdx.x] = 100;
  __syncthreads();
  out[threadIdx.x] = many[blockDim.x - 1 - threadIdx.x] + one[threadIdx.x % 3];
})";

// A kernel reports the bytes of its own variables, without those of other kernels.
TEST(Kernels, SharedMemoryIsEachKernelsOwn) {
  struct Case {
    const char* kernel;
    uint32_t bytes;
    int factor, plus;
  };
  const Case cases[] = {{"none", 0, 0, 1},
                        {"first", 256, 2, 0},
                        {"both", 128 + 40, 4, 0},
                        {"borrowed", 128, 5, 0},
                        {"dynamic", 64, 7, 100}};
  for (ThreadForm form : {ThreadForm::kLoops, ThreadForm::kPerThread}) {
    absl::StatusOr<CompileResult> result = Compile({.source = kSharedOfSeveral, .form = form});
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->kernels.size(), std::size(cases));
    absl::StatusOr<std::unique_ptr<Module>> module = Module::LoadBytes(result->object);
    ASSERT_TRUE(module.ok()) << module.status();
    ThreadPool pool(1);
    for (size_t i = 0; i < std::size(cases); ++i) {
      const Case& want = cases[i];
      const CompiledKernel& kernel = result->kernels[i];
      ASSERT_EQ(kernel.name, want.kernel);
      EXPECT_EQ(kernel.static_shared_bytes, want.bytes) << kernel.name;
      KernelEntry entry{.name = kernel.name,
                        .function = (*module)->Symbol(kernel.symbol),
                        .static_shared_bytes = kernel.static_shared_bytes,
                        .private_bytes_per_thread = kernel.private_bytes_per_thread,
                        .per_thread = form == ThreadForm::kPerThread};
      int values[32] = {};
      int* out = values;
      ASSERT_TRUE(Launch(pool, entry, {{2, 1, 1}, {32, 1, 1}, 128}, &out, nullptr).ok());
      for (int t = 0; t < 32; ++t) {
        int expected = (31 - t) * want.factor + want.plus;
        EXPECT_EQ(values[t], expected) << kernel.name << " " << t;
      }
    }
  }
}

// The target of a function pointer is unknown at compile time: its variables have one location for
// all kernels.
TEST(Kernels, SharedMemoryThroughAPointer) {
  absl::StatusOr<CompileResult> result = Compile({.source = R"(
__device__ int turned(int v) {
  __shared__ int around[32];
  around[threadIdx.x] = v;
  __syncthreads();
  return around[blockDim.x - 1 - threadIdx.x];
}
__global__ void k(int* out) {
  __shared__ int s[32];
  int (*function)(int) = turned;
  s[threadIdx.x] = threadIdx.x * 100;
  int v = function(threadIdx.x);
  out[threadIdx.x] = v + s[v];
}
__global__ void other(int* out) { out[0] = 1; })"});
  ASSERT_TRUE(result.ok()) << result.status();
  auto module = Module::LoadBytes(result->object);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(result->kernels[0].static_shared_bytes, 256u);
  EXPECT_EQ(result->kernels[1].static_shared_bytes, 256u);
  const CompiledKernel& kernel = result->kernels[0];
  KernelEntry entry{.name = kernel.name,
                    .function = (*module)->Symbol(kernel.symbol),
                    .static_shared_bytes = kernel.static_shared_bytes,
                    .private_bytes_per_thread = kernel.private_bytes_per_thread,
                    .per_thread = kernel.form == ThreadForm::kPerThread};
  int values[32] = {};
  int* out = values;
  ThreadPool pool(1);
  ASSERT_TRUE(Launch(pool, entry, {{1, 1, 1}, {32, 1, 1}}, &out, nullptr).ok());
  for (int t = 0; t < 32; ++t) EXPECT_EQ(values[t], (31 - t) * 101);
}

// A recursive function stays a function; its shared memory is refused, not misplaced.
TEST(Kernels, SharedMemoryOfRecursionIsRefused) {
  absl::Status status = Build(R"(
__device__ int again(int v) {
  __shared__ int s[8];
  s[v & 7] = v;
  return v < 2 ? s[0] : again(v / 2) * again(v - 2) + s[v & 7];
}
__global__ void k(int* out, int v) { out[0] = again(v); })")
                            .status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

TEST(Kernels, AggregatesArePassedByValue) {
  Loaded loaded = Build(
      "struct Size { int w; double h; };\n__global__ void k(double* out, Size size) { "
      "out[threadIdx.x] = size.w + size.h; }");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  double out[4] = {};
  struct {
    double* out;
    struct {
      int w;
      double h;
    } size;
  } arguments = {out, {3, 0.5}};
  ThreadPool pool(1);
  ASSERT_TRUE(Launch(pool, loaded.entry, {{1, 1, 1}, {4, 1, 1}}, &arguments, nullptr).ok());
  EXPECT_EQ(out[3], 3.5);
}

TEST(Kernels, PrintfIsReturned) {
  Loaded loaded = Build(
      "__global__ void k(int n) { if (threadIdx.x == 1) printf(\"%d %s %.2f %5u|%%\\n\", n, "
      "\"text\", 1.5f, 7u); __syncthreads(); }");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  int n = -42;
  ThreadPool pool(1);
  PrintedText printed;
  ASSERT_TRUE(Launch(pool, loaded.entry, {{1, 1, 1}, {4, 1, 1}}, &n, nullptr, &printed).ok());
  EXPECT_EQ(printed.text, "-42 text 1.50     7|%\n");
}

TEST(Kernels, PrintfReturnsTheNumberOfArguments) {
  Loaded loaded = Build(
      "__global__ void k(int* out) { const char* none = nullptr; out[0] = printf(\"%d\\n%d\", 1, "
      "2); "
      "out[1] = printf(\"x\"); out[2] = printf(none); }");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  int out[3] = {};
  int* argument = out;
  ThreadPool pool(1);
  PrintedText printed;
  ASSERT_TRUE(Launch(pool, loaded.entry, {}, &argument, nullptr, &printed).ok());
  EXPECT_EQ(printed.text, "1\n2x");
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], -1);
}

TEST(Kernels, PrintfFloodKeepsFirstLinesAndCountsTheRest) {
  Loaded loaded =
      Build("__global__ void k(int n) { for (int i = 0; i < n; ++i) printf(\"%099d\\n\", i); }");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  int n = 20000;
  ThreadPool pool(1);
  PrintedText printed;
  ASSERT_TRUE(Launch(pool, loaded.entry, {}, &n, nullptr, &printed).ok());
  EXPECT_EQ(printed.text.size(), kMaxPrintedBytes / 100 * 100);
  EXPECT_EQ(printed.dropped_lines, 20000 - kMaxPrintedBytes / 100);
}

struct OwnName {
  const char* source;  // a kernel `k` that sets out[0] to 7
};
class OwnNamesTest : public testing::TestWithParam<OwnName> {};

// NVRTC compiles each of these: it declares none of the names.
TEST_P(OwnNamesTest, SourceMayDeclareANameOfThePrelude) {
  const std::string source = GetParam().source;
  Loaded loaded = Build(source.c_str());
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  EXPECT_EQ(loaded.compiled.name, "k");
  int64_t out[2] = {};
  void* argument = out;
  ThreadPool pool(1);
  ASSERT_TRUE(Launch(pool, loaded.entry, {}, &argument, nullptr).ok());
  EXPECT_EQ(out[0], 7);
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, OwnNamesTest,
    testing::Values(
        OwnName{"typedef unsigned long long uint64_t; typedef long long int64_t;\n"
                "__global__ void k(int64_t* out) { out[0] = (uint64_t)7; }"},
        OwnName{"typedef unsigned long uint; typedef signed char uchar; typedef int ushort;\n"
                "__global__ void k(long* out) { out[0] = sizeof(uint) - (uchar)1 + (ushort)0; }"},
        OwnName{"using size32_t = unsigned; using uint8_t = size32_t; using uint16_t = size32_t;\n"
                "__global__ void k(long* out) { out[0] = sizeof(uint8_t) + 3 * (sizeof(uint16_t) / "
                "4); }"},
        OwnName{"struct half { unsigned short x; }; struct half2 { half a, b; };\n"
                "__global__ void k(long* out) { half2 h = {{3}, {4}}; out[0] = h.a.x + h.b.x; }"},
        OwnName{"__device__ int stride = 7; __global__ void k(long* out) { out[0] = stride; }"},
        OwnName{"const float M_PI = 3.5f; __global__ void k(long* out) { out[0] = 2 * M_PI; }"},
        OwnName{"enum { INT_MAX = 3, UINT_MAX = 4 };\n"
                "__global__ void k(long* out) { out[0] = INT_MAX + UINT_MAX; }"},
        OwnName{"__device__ unsigned long long __globaltimer() { return 7; }\n"
                "__global__ void k(long* out) { out[0] = __globaltimer(); }"},
        OwnName{"__device__ float hexp(float x) { return x + 3; }\n"
                "__global__ void k(long* out) { out[0] = hexp(4.0f); }"},
        OwnName{"__device__ int min(int a, int b) { return 5; }\n"
                "__global__ void k(long* out) { out[0] = min(8, 9) + min(4.5f, 2.0f); }"},
        OwnName{
            "__device__ double atomicAdd(double* at, double x) { *at += x; return 1; }\n"
            "__global__ void k(long* out) { __shared__ double s; __shared__ int i; s = 1; i = 0;\n"
            "  out[0] = atomicAdd(&s, 2.0) + s + atomicAdd(&i, 3) + i; }"}));

TEST(Kernels, ErrorsUseTheNamesOfTheSource) {
  Loaded loaded = Build(
      "typedef unsigned long long uint64_t;\n__global__ void k(uint64_t* out) { out = 1.5; }");
  EXPECT_TRUE(absl::IsInvalidArgument(loaded.status));
  const std::string text(loaded.status.message());
  EXPECT_NE(text.find("'uint64_t *'"), std::string::npos) << text;
  EXPECT_EQ(text.find("__stride_own_"), std::string::npos) << text;
}

TEST(Kernels, ConflictWithinTheSourceIsAnError) {
  for (const char* source :
       {"typedef int one; typedef long one; __global__ void k() {}",
        "__device__ double max(int, int) { return 7; } __global__ void k() {}",
        "struct float4 { float x; }; __global__ void k() {}",
        "class __attribute__((packed)) int3\n{ int x; }; __global__ void k() {}",
        "__device__ int warpSize = 64; __global__ void k() {}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Build(source).status)) << source;
  }
}

// NVRTC reports "invalid redeclaration of type name" for each.
TEST(Kernels, BuiltInTypeCannotBeRedefined) {
  std::vector<std::string> types = {"dim3"};
  for (const char* element : {"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong",
                              "longlong", "ulonglong", "float", "double"}) {
    for (const char* count : {"1", "2", "3", "4"}) types.push_back(absl::StrCat(element, count));
  }
  for (const std::string& type : types) {
    const Loaded loaded =
        Build(absl::StrCat("struct ", type, " { float x; };\n__global__ void k() {}").c_str());
    EXPECT_TRUE(absl::IsInvalidArgument(loaded.status)) << type;
    EXPECT_NE(loaded.status.message().find(absl::StrCat("redefinition of '", type, "'")),
              std::string::npos)
        << loaded.status;
  }
}

TEST(Kernels, AssertEndsTheLaunch) {
  Loaded loaded = Build(
      "__global__ void k(int n) {\n  __syncthreads();\n  assert(threadIdx.x != 3 || blockIdx.x < "
      "n);\n}");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  int n = 2;
  ThreadPool pool(2);
  absl::Status status = Launch(pool, loaded.entry, {{3, 1, 1}, {4, 1, 1}}, &n, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_NE(std::string(status.message())
                .find("assertion `threadIdx.x != 3 || blockIdx.x < n` failed at kernel.cu:3, block "
                      "(2, 0, 0), thread (3, 0, 0)"),
            std::string::npos)
      << status;
  n = 5;
  EXPECT_TRUE(Launch(pool, loaded.entry, {{3, 1, 1}, {4, 1, 1}}, &n, nullptr).ok());
}

TEST(Kernels, CancelledBetweenBlocks) {
  Loaded loaded = Build("__global__ void k(int* out) { out[0] = 1; }");
  ASSERT_TRUE(loaded.status.ok());
  int value = 0;
  int* out = &value;
  std::atomic<bool> cancel{true};
  ThreadPool pool(1);
  EXPECT_EQ(Launch(pool, loaded.entry, {{10, 1, 1}, {1, 1, 1}}, &out, &cancel).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(value, 0);
}

TEST(Kernels, LimitsAreChecked) {
  Loaded loaded = Build("__global__ void k(int n) {}");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  int n = 0;
  ThreadPool pool(1);
  auto code = [&](LaunchConfig config) {
    return Launch(pool, loaded.entry, config, &n, nullptr).code();
  };
  EXPECT_EQ(code({{1, 1, 1}, {1025, 1, 1}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{1, 1, 1}, {64, 64, 1}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{0, 1, 1}, {64, 1, 1}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{1u << 30, 1, 1}, {64, 1, 1}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{1, 1, 1}, {64, 1, 1}, 1 << 20}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{2, 1, 1}, {64, 1, 1}, 1 << 10}), absl::StatusCode::kOk);
}

// Blocks and threads resume with values in registers and on stacks, on any thread of the pool. Some
// blocks have ended by then.
TEST(Kernels, CooperativeGridsSynchronize) {
  Loaded loaded = Build(R"(
    #include <cooperative_groups.h>
    __global__ void k(int* seen, int rounds) {
      auto grid = cooperative_groups::this_grid();
      int mine = grid.thread_rank(), own[4] = {mine, 2 * mine, 3 * mine, 4 * mine};
      for (int i = 0; i < rounds; ++i) {
        if (blockIdx.x == 0 && i == 2) return;
        atomicAdd(&seen[i], 1);
        grid.sync();
        if (seen[i] < (int)(gridDim.x - 1) * blockDim.x) __trap();
        __syncthreads();
        if (own[i % 4] != (i % 4 + 1) * mine) __trap();
      }
    })");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  EXPECT_EQ(loaded.compiled.form, ThreadForm::kPerThread);
  ThreadPool pool(3);
  std::vector<int> seen(8, 0);
  struct {
    int* seen;
    int rounds;
  } arguments{seen.data(), 8};
  LaunchConfig config{{7, 1, 1}, {96, 1, 1}};
  absl::Status alone = Launch(pool, loaded.entry, config, &arguments, nullptr);
  EXPECT_EQ(alone.code(), absl::StatusCode::kAborted) << alone;
  EXPECT_NE(alone.message().find("not cooperative"), absl::string_view::npos) << alone;
  config.cooperative = true;
  seen.assign(8, 0);
  absl::Status status = Launch(pool, loaded.entry, config, &arguments, nullptr);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen[1], 7 * 96);
  EXPECT_EQ(seen[7], 6 * 96);
  config.grid.x = MaxCooperativeBlocks(loaded.entry, config) + 1;
  EXPECT_EQ(Launch(pool, loaded.entry, config, &arguments, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Kernels, FaultEndsACooperativeGrid) {
  Loaded loaded = Build(R"(
    #include <cooperative_groups.h>
    __global__ void k(int* out) {
      cooperative_groups::this_grid().sync();
      if (blockIdx.x == 3 && threadIdx.x == 5) __trap();
      cooperative_groups::this_grid().sync();
      out[0] = 1;
    })");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  ThreadPool pool(2);
  int out = 0;
  int* argument = &out;
  LaunchConfig config{{6, 1, 1}, {32, 1, 1}};
  config.cooperative = true;
  absl::Status status = Launch(pool, loaded.entry, config, &argument, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_NE(status.message().find("block (3, 0, 0), thread (5, 0, 0)"), absl::string_view::npos)
      << status;
  EXPECT_EQ(out, 0);
  std::atomic<bool> cancel{true};
  EXPECT_EQ(Launch(pool, loaded.entry, config, &argument, &cancel).code(),
            absl::StatusCode::kCancelled);
}

TEST(Kernels, MissingFeaturesAreNamed) {
  struct Case {
    const char* source;
    const char* feature;
  };
  const Case cases[] = {
      {"texture<float, 2, cudaReadModeElementType> t;\n"
       "__global__ void k(float* o) { o[0] = tex2D(t, 0, 0); }",
       "no texture references"},
      {"__global__ void k(cudaSurfaceObject_t s) { surf2Dwrite(1.0f, s, 0, 0); }", "no surfaces"},
      {"__global__ void k(cudaTextureObject_t t, float* o) { o[0] = tex2DLayered<float>(t, 0, 0, "
       "0); "
       "}",
       "no layered textures"},
      {"__global__ void k(int* o) { asm volatile(\"bra away;\"); }", "inline PTX `bra away`"},
      {"__global__ void k(int* o) { asm volatile(\"int3\"); }", "inline PTX `int3`"},
      {"__global__ void k(float* o) { asm(\"add.rz.f32 %0, %0, %0;\" : \"+f\"(o[0])); }", "PTX"},
      {"#include <cooperative_groups.h>\n__global__ void k() { "
       "cooperative_groups::this_multi_grid().sync(); }",
       "several devices"},
      {"__global__ void c() {}\n__global__ void k() { c<<<1, 1>>>(); }", "dynamic parallelism"},
      {"#include <cub/device/device_reduce.cuh>\n__global__ void k(float* x) { "
       "cub::DeviceReduce::Sum(nullptr, x, x, x, 1); }",
       "no device-wide algorithms of CUB"},
      {"#include <cub/cub.cuh>\n__global__ void k() { cub::BlockRunLengthDecode x; }",
       "no such part of the CUB library"},
      {"#include <thrust/sort.h>\n__global__ void k() {}", "no Thrust library"},
      {"#include <cuda/semaphore>\n__global__ void k() {}", "no such libcu++ header"},
      {"#include <curand_kernel.h>\n__global__ void k(curandStateMtgp32* s) {}",
       "no Mersenne Twister"},
      {"#include <mma.h>\n__global__ void k() {}", "tensor core"},
  };
  for (const Case& c : cases) {
    absl::Status status = Build(c.source).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << c.source << "\n" << status;
    EXPECT_NE(std::string(status.message()).find(c.feature), std::string::npos) << status;
  }
}

TEST(Kernels, MistakesAreExplained) {
  auto fails = [](const char* source, std::vector<std::string> entries,
                  std::vector<std::string> options, const char* text,
                  absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    absl::Status status = Build(source, {}, entries, options).status;
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status;
  };
  fails("__global__ void k(int* o) {\n  o[0] = missing;\n}", {}, {},
        "kernel.cu:2:10: error: use of undeclared identifier 'missing'");
  fails("__global__ void k(int* o) {}", {"other"}, {}, "`other`", absl::StatusCode::kNotFound);
  fails("int x;", {}, {}, "defines no kernel");
  fails("__global__ void k(int* o) {}", {"k; }"}, {}, "not a name");
  fails("__global__ void k(int* o) {}", {}, {"-I/etc"}, "include path");
  fails("__global__ void k(int* o) {}", {}, {"-fplugin=x.so"}, "refused");
  fails("#include \"/etc/passwd\"\n__global__ void k(int* o) {}", {}, {}, "file not found");
  fails(
      "extern \"C\" __device__ int system(const char*);\n__global__ void k(int* o) { o[0] = "
      "system(\"true\"); }",
      {}, {}, "defined nowhere");
  fails("__device__ int helper() { return 1; }", {"helper"}, {}, "not a __global__");
  fails("__global__ void k() {}\nint main() { k<<<1, 1>>>(); }", {}, {}, "has host code");
  fails("__global__ void k() {}\nvoid f() { cudaDeviceSynchronize(); }", {}, {}, "has host code");
  fails("#include <vector>\n__global__ void k() {}", {}, {}, "has host code");
}

// The system's loader identifies objects by the paths it has seen.
TEST(Modules, ThousandsOfModulesStayDistinct) {
  CompileRequest request{.source = "extern \"C\" __global__ void k(int* x) { *x = 1; }"};
  absl::StatusOr<CompileResult> result = Compile(request);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<std::unique_ptr<Module>> modules;
  std::set<void*> functions;
  for (int i = 0; i < 2000; ++i) {
    auto module = Module::LoadBytes(result->object);
    ASSERT_TRUE(module.ok()) << module.status();
    void* const function = (*module)->Symbol(result->kernels[0].symbol);
    ASSERT_NE(function, nullptr);
    ASSERT_TRUE(functions.insert(function).second) << "module " << i << " is an older one";
    modules.push_back(*std::move(module));
  }
}

}  // namespace
}  // namespace stride::cpucuda
