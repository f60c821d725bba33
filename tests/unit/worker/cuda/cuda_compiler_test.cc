#include "server/worker/cuda/compile/cuda_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/executable_stamp.h"
#include "server/store/dtype.h"
#include "server/worker/cuda/compile/cubin_info.h"
#include "server/worker/cuda/compile/nvrtc.h"
#include "server/worker/cuda/driver/grid_barrier.h"

namespace stride::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using wire::Parameter;

constexpr char kTarget[] = "cuda:sm_90";

// One compiler for all tests: opening NVRTC takes longer than they do.
class CudaCompilerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { compiler_ = new CudaCompiler; }
  static void TearDownTestSuite() { delete compiler_; }
  void SetUp() override {
    if (CudaCompiler::Toolchain().empty()) GTEST_SKIP() << "no NVRTC on this machine";
  }

  static absl::StatusOr<worker::CompiledCode> Compile(
      const std::string& source, std::vector<std::string> entries = {},
      std::vector<std::string> options = {}, wire::Source::Kind kind = wire::Source::KIND_CUDA_CPP,
      const char* target = kTarget) {
    wire::Code code;
    code.mutable_source()->set_kind(kind);
    code.mutable_source()->set_text(source);
    for (const std::string& entry : entries) code.mutable_source()->add_entries(entry);
    for (const std::string& option : options) code.mutable_source()->add_options(option);
    return compiler_->Compile(target, code);
  }

  static std::vector<std::string> Entries(const worker::CompiledCode& code) {
    std::vector<std::string> entries;
    for (const auto& kernel : code.description.kernels()) entries.push_back(kernel.entry());
    return entries;
  }

  static CudaCompiler* compiler_;
};
CudaCompiler* CudaCompilerTest::compiler_ = nullptr;

// Compiled code is stored on disk under a name that contains this.
TEST_F(CudaCompilerTest, ToolchainDiffersPerBuild) {
  EXPECT_THAT(CudaCompiler::Toolchain(), HasSubstr(ExecutableStamp()));
}

TEST_F(CudaCompilerTest, DescribesParameters) {
  auto code = Compile(R"(
struct Big { double a[3]; char c; };
enum Color { red };
extern "C" __global__ void kernel(float a, const int* x, double* __restrict__ y, Big big, Color c,
                                  bool flag, long long n, char last) {
  y[0] = a + x[0] + big.a[1] + c + flag + n + last;
}
)",
                      {"kernel"});
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_EQ(code->description.kernels_size(), 1);
  const wire::KernelDescription& kernel = code->description.kernels(0);
  EXPECT_EQ(kernel.symbol(), "kernel");
  EXPECT_TRUE(kernel.parameters_known());
  struct {
    Parameter::Kind kind;
    uint32_t offset, size;
    DType pointee;
    bool is_const;
  } expected[] = {{Parameter::KIND_FLOAT, 0, 4, {}, false},
                  {Parameter::KIND_POINTER, 8, 8, DType::kInt32, true},
                  {Parameter::KIND_POINTER, 16, 8, DType::kFloat64, false},
                  {Parameter::KIND_AGGREGATE, 24, 32, {}, false},
                  {Parameter::KIND_INTEGER, 56, 4, {}, false},
                  {Parameter::KIND_BOOL, 60, 1, {}, false},
                  {Parameter::KIND_INTEGER, 64, 8, {}, false},
                  {Parameter::KIND_INTEGER, 72, 1, {}, false}};
  ASSERT_EQ(kernel.parameters_size(), 8);
  for (int i = 0; i < 8; ++i) {
    const Parameter& parameter = kernel.parameters(i);
    EXPECT_EQ(parameter.kind(), expected[i].kind) << i;
    EXPECT_EQ(parameter.offset(), expected[i].offset) << i;
    EXPECT_EQ(parameter.size(), expected[i].size) << i;
    EXPECT_EQ(parameter.pointee_dtype(), static_cast<int>(expected[i].pointee)) << i;
    EXPECT_EQ(parameter.pointee_const(), expected[i].is_const) << i;
  }
}

TEST_F(CudaCompilerTest, InstantiatesTemplatesByNameExpression) {
  auto code = Compile(R"(
namespace ns {
template <typename T, int N> __global__ void scale(T* out, const T* in) {
  __shared__ T tile[N];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[N - 1 - threadIdx.x] * T(N);
}
})",
                      {"ns::scale<float, 32>", "ns::scale<long long, 16>"});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(Entries(*code), ElementsAre("ns::scale<float, 32>", "ns::scale<long long, 16>"));
  EXPECT_EQ(code->description.kernels(0).parameters(1).pointee_dtype(),
            static_cast<int>(DType::kFloat32));
  EXPECT_EQ(code->description.kernels(1).parameters(0).type(), "long long*");
  EXPECT_EQ(code->description.kernels(0).static_shared_bytes(), 128u);
  EXPECT_EQ(code->description.kernels(1).static_shared_bytes(), 128u);
}

TEST_F(CudaCompilerTest, FindsAllNonTemplateKernels) {
  auto code = Compile(R"(
#include <stdio.h>
#define KERNEL(name) __global__ void name(int* p) { *p = 1; }
KERNEL(made_by_macro)
extern "C" __global__ void __launch_bounds__(64) plain(float* p) { *p = 2; }
namespace a { __global__ void inner(const double* p, double* q) { *q = *p; } }
template <class T> __global__ void generic(T* p) { *p = T(); }
)");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(Entries(*code), testing::UnorderedElementsAre("made_by_macro", "plain", "a::inner"));
  for (const auto& kernel : code->description.kernels()) {
    EXPECT_EQ(kernel.parameters(0).kind(), Parameter::KIND_POINTER) << kernel.entry();
    EXPECT_EQ(kernel.max_threads_per_block(), kernel.entry() == "plain" ? 64u : 0u);
  }
}

TEST_F(CudaCompilerTest, CompilesOverloadsWithoutTypes) {
  auto code =
      Compile("__global__ void f(int* p) { *p = 1; } __global__ void f(float* p) { *p = 1; }");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(Entries(*code), testing::UnorderedElementsAre("_Z1fPi", "_Z1fPf"));
  EXPECT_EQ(code->description.kernels(0).parameters(0).size(), 8u);
}

TEST_F(CudaCompilerTest, ReturnsDiagnosticsOfClientTextOnly) {
  auto code = Compile("__global__ void f(int* p) {\n  *p = nope;\n}", {"f"});
  EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string text(code.status().message());
  EXPECT_THAT(text, HasSubstr("kernel.cu(2)"));
  EXPECT_THAT(text, HasSubstr("nope"));
  EXPECT_THAT(text, Not(HasSubstr("stride_")));
}

TEST_F(CudaCompilerTest, RefusesUnknownEntriesAndEmptySources) {
  auto code = Compile("__global__ void f() {}", {"g"});
  EXPECT_EQ(code.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(code.status().message()), HasSubstr("`g`. The code has: f"));
  code = Compile("template <class T> __global__ void f() {}");
  EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Compile("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Compile(std::string("int\0x;", 6)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CudaCompilerTest, ReadsNoFilesOfTheMachine) {
  ASSERT_EQ(chdir("/"), 0);
  for (const char* line : {"#include \"/etc/passwd\"", "#include \"etc/passwd\"",
                           "#include <../../../../../etc/passwd>", "#include \"passwd\""}) {
    auto code = Compile(std::string(line) + "\n__global__ void f() {}", {"f"});
    EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(code.status().message()), Not(HasSubstr("root:")))
        << "a file's lines are in the log: " << line;
  }
}

TEST_F(CudaCompilerTest, RefusesOptionsOutsideTheList) {
  auto code = Compile("__global__ void f() {}", {"f"}, {"--create-pch=/tmp/x"});
  EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Compile("__global__ void f(int* p) { *p = N; }", {"f"}, {"-DN=3", "-O1"}).ok());
}

TEST_F(CudaCompilerTest, KnowsCommonHeaders) {
  auto code = Compile(R"(
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <math.h>
#include <float.h>
#include <limits.h>
#include <string.h>
#include <assert.h>
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <cmath>
#include <cuda_runtime.h>
extern "C" __global__ void f(uint8_t* p, std::uint64_t n, double* q) {
  assert(n < SIZE_MAX);
  if (threadIdx.x == INT_MAX) printf("%d\n", 1);
  *q = std::sqrt(M_PI) + sin(FLT_MAX) + std::fabs(*q);
  *p = (uint8_t)n;
}
)",
                      {"f"});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->description.kernels(0).parameters(0).pointee_dtype(),
            static_cast<int>(DType::kUInt8));
}

// nvcc includes the standard headers by itself, and a CPU device has their names.
TEST_F(CudaCompilerTest, KnowsStandardMacrosWithoutInclude) {
  for (const char* name :
       {"INFINITY",    "NAN",       "HUGE_VAL", "HUGE_VALF", "FLT_MAX",     "FLT_MIN",
        "FLT_EPSILON", "DBL_MAX",   "DBL_MIN",  "DBL_DIG",   "INT_MAX",     "INT_MIN",
        "UINT_MAX",    "LLONG_MAX", "CHAR_BIT", "SHRT_MAX",  "INT32_MAX",   "UINT64_MAX",
        "INT64_MIN",   "M_PI",      "M_E",      "M_SQRT2",   "uint32_t(1)", "int64_t(1)"}) {
    EXPECT_EQ(
        Compile(absl::StrCat("extern \"C\" __global__ void k(double* x) { *x = ", name, "; }"))
            .status(),
        absl::OkStatus())
        << name;
  }
  EXPECT_EQ(Compile("const float NAN = 1;\nextern \"C\" __global__ void k(float* x) { *x = NAN; }")
                .status(),
            absl::OkStatus());
  auto wrong = Compile("extern \"C\" __global__ void k(float* x) { *x = NOT_THERE; }");
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("kernel.cu(1): error: identifier \"NOT_THERE\" is undefined"));
}

TEST_F(CudaCompilerTest, AcceptsToolkitHeaders) {
  auto nvrtc = Nvrtc::Load();
  ASSERT_TRUE(nvrtc.ok());
  if ((*nvrtc)->include_folder.empty()) GTEST_SKIP() << "no toolkit headers on this machine";
  auto code = Compile(R"(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
extern "C" __global__ void f(__half* h, const __nv_bfloat16* b, int* n) {
  auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
  *n = cooperative_groups::reduce(warp, *n, cooperative_groups::plus<int>());
  *h = __hadd(*h, __float2half(__bfloat162float(*b)));
}
)",
                      {"f"});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->description.kernels(0).parameters(0).pointee_dtype(),
            static_cast<int>(DType::kFloat16));
  EXPECT_EQ(code->description.kernels(0).parameters(1).pointee_dtype(),
            static_cast<int>(DType::kBFloat16));
}

TEST_F(CudaCompilerTest, AcceptsCub) {
  auto nvrtc = Nvrtc::Load();
  ASSERT_TRUE(nvrtc.ok());
  if ((*nvrtc)->include_folder.empty()) GTEST_SKIP() << "no toolkit headers on this machine";
  auto code = Compile(R"(
#include <stdint.h>
#include <cstdint>
#include <cmath>
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void total(const int* in, int64_t* out) {
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ typename Reduce::TempStorage storage;
  int sum = Reduce(storage).Sum(in[threadIdx.x]);
  if (threadIdx.x == 0) *out = sum;
}
)",
                      {"total"}, {"--std=c++17"});
  ASSERT_TRUE(code.ok()) << code.status();
}

TEST_F(CudaCompilerTest, ReturnsPtxForNewerDevices) {
  auto code = Compile("extern \"C\" __global__ void f(const float* p, int n) {}", {"f"}, {},
                      wire::Source::KIND_CUDA_CPP, "cuda:sm_999");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->object, HasSubstr(".version"));
  const auto& kernel = code->description.kernels(0);
  ASSERT_EQ(kernel.parameters_size(), 2);
  EXPECT_EQ(kernel.parameters(0).type(), "const float*");
  EXPECT_EQ(kernel.parameters(1).offset(), 8u);
}

TEST_F(CudaCompilerTest, CompilesForEveryCommonArchitecture) {
  for (const char* target :
       {"cuda:sm_75", "cuda:sm_80", "cuda:sm_89", "cuda:sm_90", "cuda:sm_100", "cuda:sm_120"}) {
    auto code = Compile(
        "extern \"C\" __global__ void f(float* p) { __shared__ int s[8]; s[threadIdx.x] = 1; "
        "__syncthreads(); *p = s[7]; }",
        {"f"}, {}, wire::Source::KIND_CUDA_CPP, target);
    ASSERT_TRUE(code.ok()) << target << ": " << code.status();
    EXPECT_EQ(code->description.kernels(0).static_shared_bytes(), 32u) << target;
    EXPECT_EQ(code->description.kernels(0).parameters_size(), 1) << target;
  }
  EXPECT_EQ(Compile("", {}, {}, wire::Source::KIND_CUDA_CPP, "cpu:znver4").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CudaCompilerTest, ReadsLargeParameters) {
  auto code = Compile(
      "struct Block { char bytes[20000]; };\n"
      "extern \"C\" __global__ void f(Block b, int* p) { *p = b.bytes[*p]; }",
      {"f"});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->description.kernels(0).parameters(0).size(), 20000u);
  EXPECT_EQ(code->description.kernels(0).parameters(1).offset(), 20000u);
}

TEST_F(CudaCompilerTest, PassesBinariesAndPtxThrough) {
  auto cubin = Compile("extern \"C\" __global__ void f(float* p, int n) {}", {"f"});
  ASSERT_TRUE(cubin.ok());
  auto again = Compile(cubin->object, {}, {}, wire::Source::KIND_BINARY);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(Entries(*again), ElementsAre("f"));
  EXPECT_EQ(again->description.kernels(0).parameters(1).offset(), 8u);
  EXPECT_EQ(again->description.kernels(0).parameters(1).kind(), Parameter::KIND_UNSPECIFIED);
  auto ptx = Compile(".version 8.0\n.target sm_70\n.visible .entry g(.param .u64 a) { ret; }", {},
                     {}, wire::Source::KIND_PTX);
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  EXPECT_THAT(Entries(*ptx), ElementsAre("g"));
  EXPECT_FALSE(Compile("x", {}, {}, wire::Source::KIND_BINARY).ok());
  EXPECT_FALSE(Compile(cubin->object, {"nope"}, {}, wire::Source::KIND_BINARY).ok());
  EXPECT_FALSE(Compile(cubin->object, {}, {}, wire::Source::KIND_PTX).ok());
}

// Every prefix and many single-byte changes of a real object must be refused or read, never crash.
constexpr char kGlobals[] = R"(
namespace physics { __constant__ float factors[4] = {1, 2, 3, 4}; }
static __constant__ int bias = 10;
template <typename T> __device__ T total[2][3];
struct Pair { int a; float b; };
__device__ Pair pair;
extern "C" __global__ void show(float* out) {
  out[threadIdx.x] = physics::factors[threadIdx.x] + bias + total<double>[1][2] + pair.b;
}
)";

TEST_F(CudaCompilerTest, DescribesVariables) {
  wire::Code code;
  code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
  code.mutable_source()->set_text(kGlobals);
  for (const char* name : {"physics::factors", "bias", "total<double>", "pair"})
    code.mutable_source()->add_globals(name);
  // With entries, without them, and as PTX for devices newer than the compiler.
  for (const bool named : {false, true}) {
    if (named) code.mutable_source()->add_entries("show");
    for (const char* target : {kTarget, "cuda:sm_999"}) {
      auto compiled = compiler_->Compile(target, code);
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      const auto& globals = compiled->description.globals();
      ASSERT_EQ(globals.size(), 4);
      const uint64_t sizes[] = {16, 4, 48, 8};
      const bool constant[] = {true, true, false, false};
      const int types[] = {static_cast<int>(DType::kFloat32), static_cast<int>(DType::kInt32),
                           static_cast<int>(DType::kFloat64), 0};
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(globals[i].name(), code.source().globals(i));
        EXPECT_EQ(globals[i].size(), sizes[i]) << globals[i].name() << " " << target;
        EXPECT_EQ(globals[i].constant(), constant[i]) << globals[i].name() << " " << target;
        EXPECT_EQ(globals[i].dtype(), types[i]) << globals[i].name() << " " << target;
      }
    }
  }
  code.mutable_source()->set_globals(2, "nothing");
  auto wrong = compiler_->Compile(kTarget, code);
  EXPECT_TRUE(absl::IsNotFound(wrong.status())) << wrong.status();
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("`nothing`. The code has: factors"));
}

TEST_F(CudaCompilerTest, FindsVariablesOfPrebuiltCode) {
  for (const char* target : {kTarget, "cuda:sm_999"}) {
    auto made = Compile(
        "extern \"C\" { __constant__ int n[3]; __device__ int m; }\n"
        "extern \"C\" __global__ void f(int* p) { *p = n[1] + m; }",
        {"f"}, {}, wire::Source::KIND_CUDA_CPP, target);
    ASSERT_TRUE(made.ok()) << made.status();
    wire::Code code;
    const bool is_ptx = target != kTarget;
    code.mutable_source()->set_kind(is_ptx ? wire::Source::KIND_PTX : wire::Source::KIND_BINARY);
    code.mutable_source()->set_text(made->object);
    for (const char* name : {"n", "m"}) code.mutable_source()->add_globals(name);
    auto compiled = compiler_->Compile(kTarget, code);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const auto& globals = compiled->description.globals();
    ASSERT_EQ(globals.size(), 2);
    EXPECT_EQ(globals[0].size(), 12u);
    EXPECT_TRUE(globals[0].constant());
    EXPECT_EQ(globals[0].dtype(), 0);
    EXPECT_EQ(globals[1].size(), 4u);
    EXPECT_FALSE(globals[1].constant());
    code.mutable_source()->set_globals(0, "k");
    EXPECT_TRUE(absl::IsNotFound(compiler_->Compile(kTarget, code).status()));
  }
}

constexpr char kGridSync[] = R"(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void f(int* p) {
  cg::grid_group grid = cg::this_grid();
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  int sum = cg::reduce(tile, (int)tile.thread_rank(), cg::plus<int>());
  auto here = cg::coalesced_threads();
  if (grid.is_valid()) p[grid.thread_rank()] = sum + here.size();
  grid.sync();
}
)";

// Size of the variable that the worker looks for; 0 if none.
uint64_t BarrierBytes(const worker::CompiledCode& code) {
  auto variables = ReadCubinVariables(code.object);
  EXPECT_TRUE(variables.ok()) << variables.status();
  for (const VariableInfo& variable : *variables) {
    if (variable.symbol == kGridBarrierSymbol) return variable.size;
  }
  return 0;
}

// The barrier is a variable that the worker finds by its symbol; only code with a grid barrier has
// it.
TEST_F(CudaCompilerTest, OwnCooperativeGroupsHaveGridBarrier) {
  auto with = Compile(kGridSync);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(BarrierBytes(*with), sizeof(GridBarrier));
  auto without = Compile(
      "#include <cooperative_groups.h>\n"
      "__global__ void f(int* p) { cooperative_groups::this_thread_block().sync(); *p = 1; }");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(BarrierBytes(*without), 0u);
}

TEST_F(CudaCompilerTest, ToolkitProvidesOtherCooperativeGroups) {
  if (Nvrtc::Load().value()->include_folder.empty()) GTEST_SKIP() << "no toolkit's headers";
  auto code = Compile(
      "#include <cooperative_groups.h>\n"
      "namespace cg = cooperative_groups;\n"
      "__global__ void f(int* p) {\n"
      "  auto part = cg::labeled_partition(cg::coalesced_threads(), (int)threadIdx.x % 3);\n"
      "  p[threadIdx.x] = part.size();\n"
      "  cg::this_grid().sync();\n"
      "}");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(BarrierBytes(*code), 0u) << "its barrier is its own";
}

TEST_F(CudaCompilerTest, MissingCooperativeGroupsFeatureIsNamed) {
  auto wrong = Compile(
      "#include <cooperative_groups.h>\n"
      "__global__ void f(int* p) { cooperative_groups::no_such_group g; *p = 1; }");
  EXPECT_TRUE(absl::IsInvalidArgument(wrong.status()));
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("no_such_group"));
}

TEST_F(CudaCompilerTest, ReadsDamagedBinariesSafely) {
  auto cubin = Compile("extern \"C\" __global__ void f(float* p, int n) {}", {"f"});
  ASSERT_TRUE(cubin.ok());
  const std::string& object = cubin->object;
  for (size_t size = 0; size < object.size(); size += 7) (void)ReadCubin(object.substr(0, size));
  for (size_t at = 0; at < object.size(); ++at) {
    std::string damaged = object;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    (void)ReadCubin(damaged);
  }
  auto whole = ReadCubin(object);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->size(), 1u);
}

}  // namespace
}  // namespace stride::cuda
