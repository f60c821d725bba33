// The library that NVRTC and the toolkit's headers provide to kernels: each kernel here gives the
// same numbers on every device kind. Where the toolkit's headers are missing, a CUDA device reports
// it, and their tests are skipped.
#include <cmath>
#include <map>

#include "absl/strings/match.h"

#include "tests/conformance/device/kernel_fixture.h"

namespace stride::conformance {
namespace {

using Numbers = std::map<int, double>;

class KernelLibraryTest : public KernelTest {
 protected:
  // Runs `source`, which defines `k(double* p)`, with one block of 64 threads; then p[i] is
  // numbers[i], with a relative error up to `tolerance`.
  void Check(const std::string& source, const Numbers& numbers,
             const std::vector<std::string>& options = {}, double tolerance = 0) {
    const wire::Code code = Source(source, "k", {}, options);
    const auto module = harness().Load(code);
    if (absl::StrContains(module.status().message(), "belongs to the CUDA toolkit"))
      GTEST_SKIP() << module.status();
    ASSERT_TRUE(module.ok()) << module.status();
    const DeviceArray p = Zeros(DType::kFloat64, {64});
    wire::Task task = LaunchOf(*module, "k", {1}, {64});
    Pass(&task, p);
    const absl::Status status = harness().Run(task);
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<double> got = Values(p, 64);
    for (const auto& [i, want] : numbers)
      EXPECT_NEAR(got[i], want, std::abs(want) * tolerance) << "p[" << i << "]";
  }
};

TEST_F(KernelLibraryTest, ConversionsRoundAsNamed) {
  Check(R"(
extern "C" __global__ void k(double* p) {
  if (threadIdx.x != 0) return;
  const int i = 16777217;  // 2^24 + 1, which no float represents
  p[0] = __int2float_rn(i);
  p[1] = __int2float_rd(i);
  p[2] = __int2float_ru(i);
  p[3] = __int2float_rz(-i);
  p[4] = __int2float_rd(-i);
  p[5] = __uint2float_ru(4294967295u);
  p[6] = __uint2float_rd(4294967295u);
  p[7] = __ll2float_ru(9223372036854775807ll);
  p[8] = __ll2float_rz(9223372036854775807ll);
  p[9] = __ull2float_rz(18446744073709551615ull);
  p[10] = __ull2double_ru(18446744073709551615ull);
  p[11] = __ull2double_rd(18446744073709551615ull);
  p[12] = __ll2double_rd(-9007199254740993ll);
  p[13] = __double2float_ru(0.1) == 0.1f;
  p[14] = __double2float_rd(0.1) < 0.1;
  p[15] = __double2float_ru(-1e-60) == 0;
  p[16] = __double2float_rd(-1e-60) < 0;
  p[17] = __int2float_ru(0);
  p[18] = __ll2float_rd(7);
}
)",
        {{0, 16777216},
         {1, 16777216},
         {2, 16777218},
         {3, -16777216},
         {4, -16777218},
         {5, 4294967296.0},
         {6, 4294967040.0},
         {7, 0x1p63},
         {8, 0x1.fffffep62},
         {9, 0x1.fffffep63},
         {10, 0x1p64},
         {11, 0x1.fffffffffffffp63},
         {12, -9007199254740994.0},
         {13, 1},
         {14, 1},
         {15, 1},
         {16, 1},
         {17, 0},
         {18, 7}});
}

TEST_F(KernelLibraryTest, DynamicProgrammingInstructions) {
  Check(R"(
extern "C" __global__ void k(double* p) {
  if (threadIdx.x != 0) return;
  bool high, low;
  p[0] = __viaddmax_s32(3, 4, 9);
  p[1] = __viaddmin_s32(3, 4, 9);
  p[2] = __viaddmax_s32_relu(-3, -4, -9);
  p[3] = __viaddmax_u16x2(0x00010002u, 0x00030004u, 0x00090001u);
  p[4] = __viaddmin_s16x2(0x0001fffeu, 0x0003fffeu, 0x00090001u);
  p[5] = __vimax3_s32(1, -7, 5);
  p[6] = __vimin3_u32(8, 7, 9);
  p[7] = __vimin3_s16x2_relu(0x0001ffffu, 0x00020003u, 0x00030004u);
  p[8] = __vibmax_s32(4, 4, &low) * 10 + low;
  p[9] = __vibmin_u16x2(0x00010005u, 0x00020004u, &high, &low);
  p[10] = __vimax_s32_relu(-1, -2);
}
)",
        {{0, 9},
         {1, 7},
         {2, 0},
         {3, 0x00090006},
         {4, 0x0004fffc},
         {5, 5},
         {6, 7},
         {7, 0x00010000},
         {8, 41},
         {9, 0x00010004},
         {10, 0}});
}

TEST_F(KernelLibraryTest, AtomicsHaveScopes) {
  Check(R"(
extern "C" __global__ void k(double* p) {
  __shared__ int s[8];
  if (threadIdx.x < 8) s[threadIdx.x] = 3;
  __syncthreads();
  const int t = threadIdx.x;
  atomicAdd_block(&s[0], t);
  atomicSub_system(&s[1], 1);
  atomicMax_block(&s[2], t);
  atomicMin_system(&s[3], -t);
  atomicOr_block(&s[4], t);
  atomicXor_system(&s[5], t);
  atomicCAS_block(&s[6], 3, 8);
  atomicExch_system(&s[7], 5);
  __syncthreads();
  if (t < 8) p[t] = s[t];
}
)",
        {{0, 2019}, {1, -61}, {2, 63}, {3, -63}, {4, 63}, {5, 3}, {6, 8}, {7, 5}});
}

TEST_F(KernelLibraryTest, DeviceWideCubHeadersCanBeIncluded) {
  Check(R"(
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_radix_sort.cuh>
extern "C" __global__ void k(double* p) {
  typedef cub::BlockReduce<int, 64> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum((int)threadIdx.x);
  if (threadIdx.x == 0) p[0] = sum;
}
)",
        {{0, 2016}});
}

TEST_F(KernelLibraryTest, NamesNeedNoInclude) {
  Check(R"(
__device__ int total(std::initializer_list<int> all) {
  int sum = 0;
  for (int x : all) sum += x;
  return sum;
}
struct Box {
  int x;
  __device__ Box(int x) : x(x) {}
};
extern "C" __global__ void k(double* p) {
  __shared__ int s[64];
  int all = 0, t = threadIdx.x;
  s[t] = t;
  unsigned same = __match_all_sync(~0u, t / 32, &all);
  int differ = 1;
  __match_all_sync(~0u, t, &differ);
  const int warpSize = 8;
  if (t != 40) return;
  clock_t begin = clock();
  int narrow[2] = {0.0, 1.0};
  int a = 3, b = std::move(a);
  float x = 1.0f;
  p[0] = total({1, 2, 3});
  p[1] = same;
  p[2] = all * 10 + differ;
  p[3] = warpSize + narrow[1] + b;
  p[4] = rhypotf(3.0f, 4.0f);
  p[5] = isnan(nanf("")) ? 1 : 0;
  p[6] = __hadd(4, 6);
  p[7] = __vadd4(0x01ff0203, 0x01010101);
  p[8] = __vabsdiffu4(0x01020304, 0x04030201);
  p[9] = __vcmpgts2(0x00010002, 0x00020001);
  p[10] = __vsubus2(0x00050001, 0x00020003);
  __stcg(p + 11, 7.0);
  __stwt(p + 12, __ldcg(p + 11) + 1);
  p[13] = __isGlobal(p) * 100 + __isShared(s) * 10 + (begin == 0 ? 0 : 1);
  p[14] = norm3df(1.0f, 2.0f, 2.0f);
  p[15] = __funnelshift_lc(0x80000000u, 1u, 40u);
  p[16] = x;
}
)",
        {{0, 6},
         {1, 4294967295.0},
         {2, 10},
         {3, 12},
         {4, 0.2},
         {5, 1},
         {6, 5},
         {7, 0x02000304},
         {8, 0x03010103},
         {9, 0xffff},
         {10, 0x00030000},
         {11, 7},
         {12, 8},
         {13, 111},
         {14, 3},
         {15, 0x80000000u}},
        {}, 1e-7);
}

TEST_F(KernelLibraryTest, InversesOfDistributions) {
  Check(R"(
extern "C" __global__ void k(double* p) {
  if (threadIdx.x != 0) return;
  p[0] = erfinv(0.3);
  p[1] = normcdfinv(0.2);
  p[2] = erfcinv(1e-20);
  p[3] = erfcx(11.0);
  p[4] = erfinv(0.99999999);
  p[5] = erfinv(1e-5);
  p[6] = normcdfinv(1e-300);
}
)",
        {{0, 0.27246271472675435},
         {1, -0.8416212335729142},
         {2, 6.6015806223551426},
         {3, 0.051080594758088439},
         {4, 4.0522372438871389},
         {5, 8.8622692547585269e-06},
         {6, -37.047096299361201}},
        {}, 1e-8);
}

TEST_F(KernelLibraryTest, SinesOfMultiplesOfPiAreExact) {
  Check(R"(
extern "C" __global__ void k(double* p) {
  if (threadIdx.x != 0) return;
  double zeros = 0;
  for (int i = -1000; i <= 1000; ++i) {
    zeros += sinpi((double)i) == 0;
    zeros += cospi(i + 0.5) == 0;
    zeros += sinpif((float)i) == 0;
    zeros += cospif(i + 0.5f) == 0;
  }
  p[0] = zeros;
  p[1] = sinpi(0.5);
  p[2] = sinpi(-1.5);
  p[3] = cospi(3.0);
  p[4] = sinpi(1.0 / 3);
  p[5] = cospi(0.75);
  p[6] = sinpi(1e-9) * 1e9;
  p[7] = sinpif(0.3f) + cospif(100.25f);
  double s, c;
  sincospi(2.25, &s, &c);
  p[8] = s + c;
  p[9] = isnan(sinpi(INFINITY)) && isnan(cospi(-INFINITY));
}
)",
        {{0, 8004},
         {1, 1},
         {2, 1},
         {3, -1},
         {4, 0.86602540378443865},
         {5, -0.70710678118654752},
         {6, 3.1415926535897932},
         {7, 1.5161237755614949},
         {8, 1.4142135623730951},
         {9, 1}},
        {}, 1e-7);
}

TEST_F(KernelLibraryTest, UnmarkedCodeRunsWithDefaultDevice) {
  Check(R"(
int table[4] = {1, 2, 3, 4};
int helper(int i) { return table[i] * 10; }
extern "C" __global__ void k(double* p) {
  if (threadIdx.x < 4) p[threadIdx.x] = helper(threadIdx.x);
}
)",
        {{0, 10}, {3, 40}}, {"-default-device"});
}

TEST_F(KernelLibraryTest, DeviceHeapOutlivesALaunch) {
  const char* source = R"(
struct Node {
  int value;
  Node* next;
};
extern "C" __global__ void make(unsigned long long* place) {
  Node* list = nullptr;
  for (int i = 0; i < 3; ++i) {
    Node* node = (Node*)malloc(sizeof(Node));
    if (node == nullptr) return;
    node->value = i;
    node->next = list;
    list = node;
  }
  place[threadIdx.x] = (unsigned long long)list;
}
extern "C" __global__ void take(unsigned long long* place, double* p) {
  Node* list = (Node*)place[threadIdx.x];
  double sum = 0;
  while (list != nullptr) {
    Node* next = list->next;
    sum = sum * 10 + list->value;
    free(list);
    list = next;
  }
  p[threadIdx.x] = sum;
}
)";
  wire::Code code = Source(source, "make");
  code.mutable_source()->add_entries("take");
  const auto module = harness().Load(code);
  ASSERT_TRUE(module.ok()) << module.status();
  const DeviceArray place = Zeros(DType::kUInt64, {64}), p = Zeros(DType::kFloat64, {64});
  wire::Task make = LaunchOf(*module, "make", {1}, {64});
  Pass(&make, place);
  ASSERT_TRUE(harness().Run(make).ok());
  wire::Task take = LaunchOf(*module, "take", {1}, {64});
  Pass(&take, place);
  Pass(&take, p);
  ASSERT_TRUE(harness().Run(take).ok());
  for (double value : Values(p, 64)) EXPECT_EQ(value, 210);
}

TEST_F(KernelLibraryTest, FullHeapReturnsNull) {
  Check(R"(
extern "C" __global__ void k(double* p) {
  if (threadIdx.x != 0) return;
  void* small = malloc(64);
  void* large = malloc((size_t)1 << 40);
  p[0] = small != nullptr;
  p[1] = large == nullptr;
  free(small);
  free(nullptr);
}
)",
        {{0, 1}, {1, 1}});
}

TEST_F(KernelLibraryTest, HalfPairs) {
  Check(
      R"(
#include <cuda_fp16.h>
extern "C" __global__ void k(double* p) {
  __shared__ half sum;
  __shared__ half2 sums;
  half2 a = __floats2half2_rn(1.5f, -2.0f), b = a + a;
  if (threadIdx.x == 0) {
    sum = __float2half(0.0f);
    sums = __half2half2(sum);
  }
  __syncthreads();
  atomicAdd(&sum, __float2half(1.0f));
  atomicAdd(&sums, a);
  __syncthreads();
  if (threadIdx.x != 0) return;
  p[0] = __half2float(sum);
  p[1] = __low2float(sums);
  p[2] = __high2float(sums);
  b *= a;
  p[3] = __low2float(b);
  p[4] = __high2float(b);
  p[5] = __low2float(__hgt2(b, a));
  p[6] = __low2float(h2exp2(__floats2half2_rn(3.0f, 0.0f)));
  p[7] = __half2int_rz(__float2half(-3.75f));
  p[8] = __half2float(__float2half_ru(1.0001f));
  p[9] = __half2float(__float2half_rd(-1.0001f));
  p[10] = __half2float(__float2half_rz(1.0009f));
  p[11] = __half2float(__hadd_sat(__float2half(0.75f), __float2half(0.75f)));
  p[12] = __hbge2(b, b) ? 1 : 0;
  p[13] = __low2float(__hfma2(a, a, a));
  p[14] = __high2float(__lowhigh2highlow(a));
  p[15] = __half2float(__hmax(__float2half(1.0f), __float2half(2.0f)));
  p[16] = __half22float2(a).y;
  p[17] = __half2uint_rn(__float2half(7.5f));
  p[18] = __half2float(__int2half_rn(2049));
  p[19] = __half2float(hsqrt(__float2half(9.0f)));
}
)",
      {{0, 64},   {1, 96},           {2, -128},          {3, 4.5}, {4, 8},     {5, 1},  {6, 8},
       {7, -3},   {8, 1.0009765625}, {9, -1.0009765625}, {10, 1},  {11, 1},    {12, 1}, {13, 3.75},
       {14, 1.5}, {15, 2},           {16, -2},           {17, 8},  {18, 2048}, {19, 3}},
      {}, 1e-3);
}

TEST_F(KernelLibraryTest, Bfloat16Pairs) {
  Check(R"(
#include <cuda_bf16.h>
extern "C" __global__ void k(double* p) {
  __shared__ __nv_bfloat16 sum;
  __shared__ __nv_bfloat162 sums;
  __nv_bfloat162 a = __float22bfloat162_rn(make_float2(1.5f, -2.0f));
  if (threadIdx.x == 0) {
    sum = __float2bfloat16(0.0f);
    sums = __bfloat162bfloat162(sum);
  }
  __syncthreads();
  atomicAdd(&sum, __float2bfloat16(2.0f));
  atomicAdd(&sums, a);
  __syncthreads();
  if (threadIdx.x != 0) return;
  p[0] = __bfloat162float(sum);
  p[1] = __low2float(sums);
  p[2] = __high2float(sums);
  p[3] = __high2float(__hfma2(a, a, a));
  p[4] = __low2float(a * a - a);
  p[5] = __bfloat1622float2(a).x;
  p[6] = __low2float(__hmax2(a, __hneg2(a)));
  p[7] = __bfloat162int_rz(__float2bfloat16(3.5f));
}
)",
        {{0, 128}, {1, 96}, {2, -128}, {3, 2}, {4, 0.75}, {5, 1.5}, {6, 1.5}, {7, 3}}, {}, 1e-2);
}

TEST_F(KernelLibraryTest, InlinePtx) {
  Check(R"(
extern "C" __global__ void k(double* p) {
  __shared__ float s[64];
  __shared__ unsigned counter;
  int t = threadIdx.x;
  if (t == 0) counter = 5;
  s[t] = t;
  asm volatile("" ::: "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  unsigned lane, below, wide_low, wide_high, low = ~0u, high = 5;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  unsigned next = (unsigned)__cvta_generic_to_shared(&s[(t + 1) % 64]), old;
  float seen;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(seen) : "r"(next) : "memory");
  if (t != 33) return;
  float g;
  asm("{\n\t.reg .f32 t;\n\tmul.f32 t, %1, 0f40000000;\n\tadd.f32 %0, t, %1;\n\t}"
      : "=f"(g) : "f"(1.5f));
  unsigned long long wide;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(0xffffffffu), "r"(3));
  asm("mov.b64 {%0, %1}, %2;" : "=r"(wide_low), "=r"(wide_high) : "l"(wide));
  asm("add.cc.u32 %0, %0, %2;\n\taddc.u32 %1, %1, %3;" : "+r"(low), "+r"(high) : "r"(1), "r"(2));
  unsigned field, logic, permuted, inserted;
  int signed_field, chosen, rounded;
  asm("bfe.u32 %0, %1, 4, 8;" : "=r"(field) : "r"(0x12345678));
  asm("bfe.s32 %0, %1, 4, 8;" : "=r"(signed_field) : "r"(0xabcdef98));
  asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(inserted) : "r"(0xf), "r"(0));
  asm("lop3.b32 %0, %1, %2, %3, 0xca;"
      : "=r"(logic) : "r"(0xff00ff00), "r"(0x12345678), "r"(0x9abcdef0));
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(permuted) : "r"(0x33221100), "r"(0x77665544));
  asm("{ .reg .pred q; setp.lt.s32 q, %1, %2; selp.s32 %0, 7, 9, q;"
      " @q add.s32 %0, %0, 100; @!q add.s32 %0, %0, 200; }" : "=&r"(chosen) : "r"(-1), "r"(1));
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(rounded) : "f"(2.5f));
  double fused;
  asm("fma.rn.f64 %0, %1, %2, %3;" : "=d"(fused) : "d"(2.0), "d"(3.0), "d"(4.0));
  asm volatile("st.global.f64 [%0+8], %1;" ::"l"(p + 20), "d"(42.0) : "memory");
  asm volatile("atom.shared.add.u32 %0, [%1], %2;"
               : "=r"(old) : "r"((unsigned)__cvta_generic_to_shared(&counter)), "r"(3) : "memory");
  unsigned x, clock;
  asm("mov.u32 %0, %%tid.x;" : "=r"(x));
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
  p[0] = lane;
  p[1] = below;
  p[2] = seen;
  p[3] = g;
  p[4] = wide;
  p[5] = wide_high;
  p[6] = high;
  p[7] = field;
  p[8] = signed_field;
  p[9] = inserted;
  p[10] = logic;
  p[11] = permuted;
  p[12] = chosen;
  p[13] = rounded;
  p[14] = fused;
  p[15] = old * 10 + counter;
  p[16] = x;
}
)",
        {{0, 1},
         {1, 1},
         {2, 34},
         {3, 4.5},
         {4, 12884901885.0},
         {5, 2},
         {6, 8},
         {7, 0x67},
         {8, -7},
         {9, 0xf00},
         {10, 0x12bc56f0},
         {11, 0x55441100},
         {12, 107},
         {13, 2},
         {14, 10},
         {15, 58},
         {16, 33},
         {21, 42}});
}

// These become calls of the C library on a CPU.
TEST_F(KernelLibraryTest, ElementaryFunctionsOfPtxAndHalf) {
  Check(R"(
#include <cuda_fp16.h>
extern "C" __global__ void k(double* p) {
  half most = __int2half_rn(0);
  for (int i = 0; i < 40; ++i) most = __hmax(most, __int2half_rn(i * (int)threadIdx.x % 41));
  if (threadIdx.x != 1) return;
  float x = 3.0f;
  double d = 2.5;
  asm("ex2.approx.f32 %0, %0;" : "+f"(x));
  p[0] = x;
  asm("lg2.approx.f32 %0, %0;" : "+f"(x));
  p[1] = x;
  asm("sin.approx.f32 %0, %0;" : "+f"(x));
  p[2] = x;
  asm("cvt.rni.f64.f64 %0, %0;" : "+d"(d));
  p[3] = d;
  p[4] = jn(3, 1.0);
  p[5] = __half2float(most);
  p[6] = scalbln(1.5, 4);
  p[7] = llrintf(2.5f);
}
)",
        {{0, 8},
         {1, 3},
         {2, 0.14112000805986721},
         {3, 2},
         {4, 0.019563353982668405},
         {5, 39},
         {6, 24},
         {7, 2}},
        {}, 1e-5);
}

TEST_F(KernelLibraryTest, Complex) {
  Check(R"(
#include <cuComplex.h>
#include <cuda/std/complex>
extern "C" __global__ void k(double* p) {
  if (threadIdx.x != 0) return;
  cuDoubleComplex d = cuCdiv(make_cuDoubleComplex(1, 2), make_cuDoubleComplex(3, 4));
  p[0] = cuCreal(d);
  p[1] = cuCimag(d);
  p[2] = cuCabsf(make_cuFloatComplex(3, 4));
  p[3] = cuCmul(d, cuConj(d)).x;
  cuda::std::complex<float> z(1, 2);
  z *= z;
  p[4] = z.real();
  p[5] = z.imag();
  z /= cuda::std::complex<float>(0, 2);
  p[6] = abs(z);
}
)",
        {{0, 0.44}, {1, 0.08}, {2, 5}, {3, 0.2}, {4, -3}, {5, 4}, {6, 2.5}}, {}, 1e-6);
}

TEST_F(KernelLibraryTest, StandardLibrary) {
  Check(R"(
#include <cuda/std/array>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <type_traits>
template <class T>
__device__ typename std::enable_if<std::is_floating_point<T>::value, T>::type f(T x) { return x * 2; }
template <class T>
__device__ cuda::std::enable_if_t<cuda::std::is_integral_v<T>, T> f(T x) { return x + 1; }
extern "C" __global__ void k(double* p) {
  if (threadIdx.x != 0) return;
  p[0] = f(2.5);
  p[1] = f(2);
  p[2] = cuda::std::numeric_limits<int>::max();
  p[3] = cuda::std::numeric_limits<float>::lowest();
  p[4] = cuda::std::numeric_limits<long long>::min();
  p[5] = cuda::std::numeric_limits<unsigned char>::max();
  p[6] = cuda::std::numeric_limits<signed char>::min();
  cuda::std::array<int, 3> a{4, 3, 2};
  cuda::std::swap(a[0], a[2]);
  p[7] = a[0] * 10 + a.size();
  auto t = cuda::std::make_tuple(1, 2.5f);
  p[8] = cuda::std::get<1>(t);
  cuda::std::pair<int, int> q = cuda::std::make_pair(3, 4);
  p[9] = q.first * 10 + q.second;
}
)",
        {{0, 5},
         {1, 3},
         {2, 2147483647.0},
         {3, -3.4028234663852886e+38},
         {4, -9223372036854775808.0},
         {5, 255},
         {6, -128},
         {7, 23},
         {8, 2.5},
         {9, 34}});
}

TEST_F(KernelLibraryTest, CubBlockPrimitives) {
  Check(R"(
#include <cub/cub.cuh>
struct Running {
  int total;
  __device__ int operator()(int sum) {
    int old = total;
    total += sum;
    return old;
  }
};
extern "C" __global__ void k(double* p) {
  const int kThreads = 64;
  typedef cub::BlockReduce<int, kThreads> Reduce;
  typedef cub::BlockScan<int, kThreads> Scan;
  typedef cub::BlockRadixSort<float, kThreads, 4, int> Sort;
  typedef cub::BlockRadixSort<int, kThreads, 4> SortKeys;
  typedef cub::BlockExchange<int, kThreads, 4> Exchange;
  typedef cub::BlockDiscontinuity<int, kThreads> Heads;
  typedef cub::BlockLoad<double, kThreads, 1, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
    typename Sort::TempStorage sort;
    typename SortKeys::TempStorage sort_keys;
    typename Exchange::TempStorage exchange;
    typename Heads::TempStorage heads;
    typename Load::TempStorage load;
  } temp;
  int t = threadIdx.x;
  int sum = Reduce(temp.reduce).Sum(t);
  if (t == 0) p[0] = sum;
  __syncthreads();
  int most = Reduce(temp.reduce).Reduce(t * 7 % 64, cub::Max());
  if (t == 0) p[1] = most;
  __syncthreads();
  int part = Reduce(temp.reduce).Sum(t, 10);
  if (t == 0) p[2] = part;
  __syncthreads();
  int before, all;
  Scan(temp.scan).ExclusiveSum(t, before, all);
  if (t == 63) p[3] = before, p[4] = all;
  __syncthreads();
  Running running{100};
  for (int round = 0; round < 3; ++round) {
    int out;
    Scan(temp.scan).ExclusiveSum(1, out, running);
    if (t == 5) p[5 + round] = out;
    __syncthreads();
  }
  int items[4] = {t, t, t, t}, outs[4];
  Scan(temp.scan).InclusiveSum(items, outs);
  if (t == 63) p[8] = outs[3];
  __syncthreads();
  Scan(temp.scan).InclusiveScan(items, outs, cub::Max(), all);
  if (t == 3) p[9] = outs[3], p[10] = all;
  __syncthreads();
  float keys[4];
  int values[4];
  for (int i = 0; i < 4; ++i) {
    keys[i] = ((t * 4 + i) * 37 % 256) - 100.0f;
    values[i] = t * 4 + i;
  }
  Sort(temp.sort).Sort(keys, values);
  if (t == 0) p[11] = keys[0], p[12] = values[0];
  if (t == 63) p[13] = keys[3], p[14] = values[3];
  __syncthreads();
  for (int i = 0; i < 4; ++i) items[i] = (t * 4 + i) * 37 % 256 - 100;
  SortKeys(temp.sort_keys).SortDescendingBlockedToStriped(items);
  if (t == 1) p[15] = items[0], p[16] = items[1];
  __syncthreads();
  for (int i = 0; i < 4; ++i) items[i] = t * 4 + i;
  Exchange(temp.exchange).BlockedToStriped(items);
  if (t == 2) p[17] = items[1];
  __syncthreads();
  Exchange(temp.exchange).StripedToBlocked(items);
  if (t == 2) p[18] = items[1];
  __syncthreads();
  int heads[4];
  for (int i = 0; i < 4; ++i) items[i] = (t * 4 + i) / 3;
  Heads(temp.heads).FlagHeads(heads, items, cub::Inequality());
  if (t == 1) p[19] = heads[0] + heads[1] * 10 + heads[2] * 100 + heads[3] * 1000;
  __syncthreads();
  double loaded[1];
  Load(temp.load).Load(p, loaded);
  if (t == 1) p[20] = loaded[0];
}
)",
        {{0, 2016}, {1, 63},   {2, 45},  {3, 1953}, {4, 2016},  {5, 105},  {6, 169},
         {7, 233},  {8, 8064}, {9, 3},   {10, 63},  {11, -100}, {12, 0},   {13, 155},
         {14, 83},  {15, 154}, {16, 90}, {17, 66},  {18, 9},    {19, 100}, {20, 63}});
}

TEST_F(KernelLibraryTest, CubWarpPrimitives) {
  Check(R"(
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
extern "C" __global__ void k(double* p) {
  typedef cub::WarpReduce<int> Reduce;
  typedef cub::WarpScan<int, 16> Scan;
  __shared__ typename Reduce::TempStorage reduce[2];
  __shared__ typename Scan::TempStorage scan[4];
  int t = threadIdx.x, sum = Reduce(reduce[t / 32]).Sum(t);
  if (t == 32) p[0] = sum;
  __syncwarp();
  int segment = Reduce(reduce[t / 32]).HeadSegmentedSum(1, t % 8 == 0);
  if (t == 8) p[1] = segment;
  int inclusive, exclusive;
  Scan(scan[t / 16]).InclusiveSum(t, inclusive);
  __syncwarp();
  Scan(scan[t / 16]).ExclusiveSum(1, exclusive);
  if (t == 17) p[2] = inclusive;
  if (t == 47) p[3] = exclusive;
  if (t < 32) {
    int first = Reduce(reduce[0]).Sum(1, 20);
    if (t == 0) p[4] = first;
  }
}
)",
        {{0, 1520}, {1, 8}, {2, 33}, {3, 15}, {4, 20}});
}

// The numbers are those of the toolkit's header, compiled for the host.
TEST_F(KernelLibraryTest, Curand) {
  Check(R"(
#include <curand_kernel.h>
template <class S>
__device__ void Draw(double* p, S* s) {
  p[0] = curand(s);
  p[1] = curand_uniform(s);
  p[2] = curand_uniform_double(s);
  p[3] = curand_normal(s);
  p[4] = curand_normal(s);
  p[5] = curand_normal_double(s);
  p[6] = curand_log_normal(s, 0.5f, 0.25f);
  p[7] = curand_log_normal_double(s, 0.5, 0.25);
  p[8] = curand_poisson(s, 7.5);
  p[9] = curand(s);
}
extern "C" __global__ void k(double* p) {
  if (threadIdx.x == 0) {
    curandState s;
    curand_init(1234567890123ull, 5, 77, &s);
    Draw(p, &s);
  } else if (threadIdx.x == 1) {
    curandStatePhilox4_32_10_t s;
    curand_init(1234567890123ull, 5, 77, &s);
    Draw(p + 10, &s);
  } else if (threadIdx.x == 2) {
    curandStateMRG32k3a_t s;
    curand_init(1234567890123ull, 5, 77, &s);
    Draw(p + 20, &s);
  } else if (threadIdx.x == 3) {
    unsigned v[32];
    for (int i = 0; i < 32; ++i) v[i] = (2654435761u * (i + 1)) | (1u << i);
    curandStateSobol32_t s;
    curand_init(v, 12345u, &s);
    p[30] = curand(&s);
    p[31] = curand(&s);
    p[32] = curand_uniform(&s);
  } else if (threadIdx.x == 4) {
    curandState s;
    curand_init(0, 0xffffffffffffull, 1ull << 50, &s);
    p[33] = curand(&s);
    skipahead_sequence(3, &s);
    p[34] = curand(&s);
  } else if (threadIdx.x == 5) {
    curandStatePhilox4_32_10_t s;
    curand_init(99, 7, 2, &s);
    uint4 four = curand4(&s);
    p[35] = four.x;
    p[36] = four.w;
    p[37] = curand_normal4(&s).z;
    skipahead(1ull << 40, &s);
    p[38] = curand(&s);
  }
}
)",
        {{0, 4206379733},
         {1, 0.14256907999515533},
         {2, 0.90577017291632678},
         {3, 0.45339277386665344},
         {4, -2.105839729309082},
         {5, -0.88206706384310984},
         {6, 1.2904789447784424},
         {7, 1.5501440004811455},
         {8, 12},
         {9, 374122508},
         {10, 2662294823},
         {11, 0.76061767339706421},
         {12, 0.057611302938312292},
         {13, 0.075094535946846008},
         {14, 0.76164305210113525},
         {15, 0.33582669911598551},
         {16, 1.7464560270309448},
         {17, 1.5476434094390832},
         {18, 8},
         {19, 2400322922},
         {20, 1860687814},
         {21, 0.83129113912582397},
         {22, 0.83144887671172985},
         {23, 0.30379825830459595},
         {24, 2.3584797382354736},
         {25, 0.020413258529486524},
         {26, 2.0373268127441406},
         {27, 1.221123986301498},
         {28, 5},
         {29, 92704806},
         {30, 1011668322},
         {31, 2237952},
         {32, 0.61751365661621094},
         {33, 910738638},
         {34, 1806322825},
         {35, 2338613531},
         {36, 593843238},
         {37, -0.17960488796234131},
         {38, 3220635774}},
        {}, 2e-6);
}

TEST_F(KernelLibraryTest, PoissonHasItsMeanAndVariance) {
  Check(R"(
#include <curand_kernel.h>
extern "C" __global__ void k(double* p) {
  const double means[] = {3.5, 100.0, 1000.0, 10000.0};
  curandStatePhilox4_32_10_t s;
  curand_init(42, threadIdx.x, 0, &s);
  if (threadIdx.x >= 4) return;
  double mean = means[threadIdx.x], sum = 0, squares = 0;
  const int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    double x = curand_poisson(&s, mean) - mean;
    sum += x;
    squares += x * x;
  }
  // Within five deviations of each estimate.
  p[threadIdx.x] = fabs(sum / kDraws) < 5 * sqrt(mean / kDraws);
  p[4 + threadIdx.x] = fabs(squares / kDraws / mean - 1) < 5 * sqrt((2 + 1 / mean) / kDraws);
}
)",
        {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}});
}

TEST_F(KernelLibraryTest, CooperativeGroups) {
  Check(R"(
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__device__ int Total(cg::thread_group group, int* temp, int value) {
  int rank = group.thread_rank();
  for (int i = group.size() / 2; i > 0; i /= 2) {
    temp[rank] = value;
    group.sync();
    if (rank < i) value += temp[rank + i];
    group.sync();
  }
  return value;
}
extern "C" __global__ void k(double* p) {
  __shared__ int temp[64], from[64], to[64];
  int t = threadIdx.x;
  cg::thread_block block = cg::this_thread_block();
  int total = Total(block, temp, t);
  if (t == 0) p[0] = total;
  auto tile = cg::tiled_partition<32>(block);
  auto same = cg::labeled_partition(tile, t % 3);
  int sum = cg::reduce(same, t, cg::plus<int>());
  if (t == 4) p[1] = sum, p[2] = same.size();
  auto half = cg::binary_partition(tile, t % 4 == 0);
  if (t == 8) p[3] = half.size(), p[4] = half.thread_rank();
  int inclusive = cg::inclusive_scan(tile, t, cg::plus<int>());
  int exclusive = cg::exclusive_scan(tile, 1);
  if (t == 33) p[5] = inclusive, p[6] = exclusive;
  from[t] = t * t;
  block.sync();
  cg::memcpy_async(block, to, from, sizeof(int) * 64);
  cg::wait(block);
  if (t == 1) p[7] = to[62];
  auto small = cg::tiled_partition<8>(tile);
  if (t == 50) p[8] = small.meta_group_rank() * 100 + small.meta_group_size();
  cg::coalesced_group active = cg::coalesced_threads();
  if (t == 40) p[9] = active.size();
}
)",
        {{0, 2016},
         {1, 176},
         {2, 11},
         {3, 8},
         {4, 2},
         {5, 65},
         {6, 1},
         {7, 3844},
         {8, 204},
         {9, 32}});
}

TEST_F(KernelLibraryTest, AtomicsBarriersAndPipelines) {
  Check(R"(
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
extern "C" __global__ void k(double* p) {
  __shared__ int counter, values[64], copy[64];
  __shared__ cuda::atomic<float, cuda::thread_scope_block> sum;
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  int t = threadIdx.x;
  auto block = cooperative_groups::this_thread_block();
  if (t == 0) {
    counter = 0;
    sum.store(0.0f);
    init(&barrier, blockDim.x);
  }
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_device> count(counter);
  count.fetch_add(2, cuda::memory_order_relaxed);
  count++;
  sum.fetch_add(0.5f);
  __syncthreads();
  if (t == 0) p[0] = counter, p[1] = sum.load();
  values[t] = t * t;
  auto token = barrier.arrive();
  barrier.wait(cuda::std::move(token));
  if (t == 0) p[2] = values[63];
  barrier.arrive_and_wait();
  count.fetch_max(500);
  int expected = 0;
  barrier.arrive_and_wait();
  if (t == 0) p[3] = counter, p[4] = count.compare_exchange_strong(expected, 1), p[5] = expected;
  auto pipe = cuda::make_pipeline(block, &state);
  int total = 0;
  for (int i = 0; i < 4; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, copy, values, sizeof(int) * 64, pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    total += copy[63 - t];
    __syncthreads();
    pipe.consumer_release();
  }
  if (t == 0) p[6] = total;
}
)",
        {{0, 192}, {1, 32}, {2, 3969}, {3, 500}, {4, 0}, {5, 500}, {6, 15876}});
}

}  // namespace
}  // namespace stride::conformance
