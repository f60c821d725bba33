// Threads of a warp that exchange values through volatile memory without __syncwarp, as old code
// does: right in the loop form, as fibers, and in the form that the compiler chooses.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/worker/cpu/compiler/build_kernel.h"

namespace stride::cpu {
namespace {

// out[block] is to be the sum of the block's part of `in`; `scratch` is global memory with an
// element for each thread.
struct Arguments {
  int* out;
  const int* in;
  int* scratch;
};

struct SumKernel {
  const char* name;
  const char* source;
  std::vector<unsigned> blocks;  // threads
};

const SumKernel kSums[] = {
    {"volatile_array",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile int s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8];
    s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
  }
  if (t == 0) out[blockIdx.x] = s[0];
})",
     {64}},
    {"function_with_volatile_parameter",
     R"(
template <unsigned int N> __device__ void warpReduce(volatile int* sdata, unsigned int tid) {
  if (N >= 64) sdata[tid] += sdata[tid + 32];
  if (N >= 32) sdata[tid] += sdata[tid + 16];
  if (N >= 16) sdata[tid] += sdata[tid + 8];
  if (N >= 8) sdata[tid] += sdata[tid + 4];
  if (N >= 4) sdata[tid] += sdata[tid + 2];
  if (N >= 2) sdata[tid] += sdata[tid + 1];
}
__global__ void k(int* out, const int* in, int* scratch) {
  extern __shared__ int sdata[];
  unsigned int tid = threadIdx.x;
  sdata[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 32; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid < 32) warpReduce<64>(sdata, tid);
  if (tid == 0) out[blockIdx.x] = sdata[0];
})",
     {64, 128, 1024}},
    {"volatile_pointer_and_a_register",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ int sdata[256];
  int tid = threadIdx.x, mySum;
  sdata[tid] = mySum = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  if (blockDim.x >= 256) { if (tid < 128) sdata[tid] = mySum = mySum + sdata[tid + 128]; __syncthreads(); }
  if (blockDim.x >= 128) { if (tid < 64) sdata[tid] = mySum = mySum + sdata[tid + 64]; __syncthreads(); }
  if (tid < 32) {
    volatile int* smem = sdata;
    if (blockDim.x >= 64) smem[tid] = mySum = mySum + smem[tid + 32];
    if (blockDim.x >= 32) smem[tid] = mySum = mySum + smem[tid + 16];
    if (blockDim.x >= 16) smem[tid] = mySum = mySum + smem[tid + 8];
    if (blockDim.x >= 8) smem[tid] = mySum = mySum + smem[tid + 4];
    if (blockDim.x >= 4) smem[tid] = mySum = mySum + smem[tid + 2];
    if (blockDim.x >= 2) smem[tid] = mySum = mySum + smem[tid + 1];
  }
  if (tid == 0) out[blockIdx.x] = sdata[0];
})",
     {64, 128, 256}},
    {"volatile_casts",
     R"(
#define V(x) (*(volatile int*)&(x))
__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 32 + t];
  s[t + 32] = 0;
  for (int half = 16; half > 0; half >>= 1) V(s[t]) = V(s[t]) + V(s[t + half]);
  if (t == 0) out[blockIdx.x] = V(s[0]);
})",
     {32}},
    {"loop_within_divergent_code",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile long long s[128];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  if (t < 32) {
    for (int i = t + 32; i < blockDim.x; i += 32) s[t] += s[i];
    for (int half = 16; half > 0; half >>= 1) {
      if (t < half) s[t] += s[t + half];
    }
    if (t == 0) out[blockIdx.x] = (int)s[0];
  }
})",
     {32, 64, 96, 128}},
    {"scan_by_lanes",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile float s[256];
  int t = threadIdx.x, lane = t & 31;
  float sum = s[t] = in[blockIdx.x * blockDim.x + t];
  if (lane >= 1) s[t] = sum = sum + s[t - 1];
  if (lane >= 2) s[t] = sum = sum + s[t - 2];
  if (lane >= 4) s[t] = sum = sum + s[t - 4];
  if (lane >= 8) s[t] = sum = sum + s[t - 8];
  if (lane >= 16) s[t] = sum = sum + s[t - 16];
  __syncthreads();
  if (t == 0) {
    float all = 0;
    for (int i = 31; i < blockDim.x; i += 32) all += s[i];
    out[blockIdx.x] = (int)all;
  }
})",
     {32, 64, 256}},
    {"counters_with_tags",
     R"(
__device__ void add(volatile unsigned* counter, unsigned tag) {
  unsigned count;
  do {
    count = *counter & 0x07FFFFFFu;
    count = tag | (count + 1);
    *counter = count;
  } while (*counter != count);
}
__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ unsigned h[32];
  h[threadIdx.x] = 0;
  unsigned tag = threadIdx.x << 27;
  for (int i = 0; i < 1000; ++i) {
    if (in[blockIdx.x * 32 + threadIdx.x] > i) add(&h[i & 7], tag);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = 0;
    for (int i = 0; i < 8; ++i) out[blockIdx.x] += h[i] & 0x07FFFFFFu;
  }
})",
     {32}},
    {"global_memory",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  volatile int* s = scratch + blockIdx.x * blockDim.x;
  int t = threadIdx.x, lane = t & 31;
  s[t] = in[blockIdx.x * blockDim.x + t];
  for (int half = 16; half > 0; half >>= 1) s[t] += lane + half < 32 ? s[t + half] : 0;
  __syncthreads();
  if (t == 0) {
    int all = 0;
    for (int i = 0; i < blockDim.x; i += 32) all += s[i];
    out[blockIdx.x] = all;
  }
})",
     {32, 64, 256}},
    {"two_sides",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile int s[32];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 32 + t];
  if (t < 16) {
    s[t] += t < 8 ? s[t + 8] : 0;
    s[t] += t < 4 ? s[t + 4] : 0;
    if (t < 2) s[t] += s[t + 2];
    if (t < 1) s[t] += s[t + 1];
  } else {
    for (int half = 8; half > 0; half >>= 1) {
      if (t >= 32 - half) s[t] += s[t - half];
    }
  }
  if (t < 1) s[t] += s[31];
  if (t == 0) out[blockIdx.x] = s[0];
})",
     {32}},
    {"the_same_test_twice",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile int s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 32 + t];
  s[t + 32] = 0;
  if (t < 16) s[t] += s[t + 16];
  s[t + 32] = s[31 - t];
  if (t < 16) s[t + 32] = s[t];
  if (t < 8) s[t] = s[t + 32] + s[t + 40];
  if (t < 4) s[t] += s[t + 4];
  if (t < 2) s[t] += s[t + 2];
  if (t < 1) out[blockIdx.x] = s[t] + s[t + 1];
})",
     {32}},
    {"rounds_that_some_skip",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile int s[33];
  int t = threadIdx.x, mine = in[blockIdx.x * 32 + t];
  s[t] = 0;
  for (int round = 0; round < 32; ++round) {
    int next = s[(t + 1) & 31];
    if (t == round) { s[t] = mine; continue; }
    if (t > round && (t & 1)) { int x = s[t]; if (x != 0) break; }
    s[t] = t < round ? next : 0;
    if (t < round) s[t] += mine - mine;
  }
  // Only where all lanes went round together is the value of each known; the sum needs none of it.
  s[t] = mine;
  for (int half = 16; half > 0; half >>= 1) s[t] += t + half < 32 ? s[t + half] : 0;
  if (t == 0) out[blockIdx.x] = s[0];
})",
     {32}},
    {"members_of_a_struct",
     R"(
struct Pair { volatile int left; int pad; volatile int right; };
__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ Pair s[48];
  int t = threadIdx.x;
  s[t].left = in[blockIdx.x * 32 + t];
  for (int half = 16; half > 0; half >>= 1) {
    s[t].right = t + half < 32 ? s[t + half].left : 0;
    s[t].left += s[t].right;
  }
  if (t == 0) out[blockIdx.x] = s[0].left;
})",
     {32}},
    {"beside_shuffles_of_some_lanes",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile int s[64];
  int t = threadIdx.x, mine = in[blockIdx.x * 32 + t];
  s[t] = mine;
  s[t + 32] = 0;
  if (t < 16) {
    s[t] += s[t + 16];
    int other = __shfl_down_sync(0xffffu, s[t], 8);
    s[t] = t < 8 ? s[t] + other : 0;
    for (int half = 4; half > 0; half >>= 1) s[t] += s[t + half];
  }
  if (t == 0) out[blockIdx.x] = s[0];
})",
     {32}},
    // As it was before: ordinary memory with barriers of the warp.
    {"barriers_of_the_warp",
     R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    int v = s[t] + s[t + 32];
    for (int half = 16; half > 0; half >>= 1) {
      __syncwarp();
      s[t] = v;
      __syncwarp();
      v += s[t ^ half];
    }
    if (t == 0) out[blockIdx.x] = v;
  }
})",
     {64}},
};

class WarpSynchronous : public testing::TestWithParam<SumKernel> {};

void ExpectSums(const Loaded& loaded, unsigned threads, const char* form) {
  constexpr unsigned kBlocks = 5;
  std::mt19937 random(5);
  std::vector<int> in(kBlocks * threads), out(kBlocks), scratch(in.size());
  for (int& value : in) value = static_cast<int>(random() % 1000);
  ThreadPool pool(2);
  Arguments arguments{out.data(), in.data(), scratch.data()};
  LaunchConfig shape{{kBlocks, 1, 1}, {threads, 1, 1}, 8192};
  absl::Status status = Launch(pool, loaded.entry, shape, &arguments, nullptr);
  ASSERT_TRUE(status.ok()) << status;
  for (unsigned i = 0; i < kBlocks; ++i) {
    auto begin = in.begin() + i * threads;
    EXPECT_EQ(out[i], std::accumulate(begin, begin + threads, 0))
        << form << ", block " << i << " of " << threads << " threads";
  }
}

TEST_P(WarpSynchronous, AddsUp) {
  const SumKernel& kernel = GetParam();
  const std::pair<const char*, std::optional<ThreadForm>> forms[] = {
      {"as chosen", {}}, {"loops", ThreadForm::kLoops}, {"fibers", ThreadForm::kPerThread}};
  for (auto& [name, form] : forms) {
    Loaded loaded = Build(kernel.source, form);
    if (form == ThreadForm::kLoops && absl::IsUnimplemented(loaded.status)) continue;
    ASSERT_TRUE(loaded.status.ok()) << name << ": " << loaded.status;
    for (unsigned threads : kernel.blocks) ExpectSums(loaded, threads, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, WarpSynchronous, testing::ValuesIn(kSums),
                         [](const auto& info) { return std::string(info.param.name); });

// Old reductions keep the fast form.
TEST(WarpSynchronousForm, ReductionsAreLoops) {
  EXPECT_EQ(Build(kSums[0].source).compiled.form, ThreadForm::kLoops);
  EXPECT_EQ(Build(kSums[1].source).compiled.form, ThreadForm::kLoops);
}

// A loop that only looks must not be cut: the thread that is to write would wait for those that
// look.
TEST(WarpSynchronousForm, WaitingForAnEarlierThreadEnds) {
  Loaded loaded = Build(R"(__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ volatile int ready;
  __shared__ int value;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) { value = 7; ready = 1; } else { while (ready == 0) {} }
  out[threadIdx.x] = value;
})");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  std::vector<int> out(32);
  Arguments arguments{out.data(), nullptr, nullptr};
  ThreadPool pool(1);
  ASSERT_TRUE(Launch(pool, loaded.entry, {{1, 1, 1}, {32, 1, 1}}, &arguments, nullptr).ok());
  EXPECT_EQ(out, std::vector<int>(32, 7));
}

// What cannot be cut is refused, not run out of step.
TEST(WarpSynchronousForm, FunctionsThatAreNoKernelsAreRefused) {
  Loaded recursive = Build(R"(
__device__ int fold(volatile int* s, int t, int half) {
  if (half == 0) return s[t];
  s[t] += s[t + half];
  return fold(s, t, half / 2) + fold(s, t, half / 3);
}
__global__ void k(int* out, const int* in, int* scratch) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = fold(s, threadIdx.x, in[0]);
})");
  EXPECT_EQ(recursive.status.code(), absl::StatusCode::kUnimplemented) << recursive.status;
  EXPECT_NE(recursive.status.message().find("volatile"), std::string::npos) << recursive.status;
}

// A thread's own volatile variables are nobody else's.
TEST(WarpSynchronousForm, PrivateVariablesCutNothing) {
  Loaded loaded = Build(R"(__global__ void k(int* out, const int* in, int* scratch) {
  volatile int x = in[threadIdx.x];
  for (int i = 0; i < 3; ++i) x = x * 2;
  out[threadIdx.x] = x;
})");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  EXPECT_FALSE(loaded.compiled.has_barrier);
}

}  // namespace
}  // namespace stride::cpu
