// Threads of a warp that exchange values through volatile memory without __syncwarp, as legacy code
// does: correct in the loop form, as fibers, and in the form that the compiler chooses.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/cpucuda/compiler/build_kernel.h"

namespace stride::cpucuda {
namespace {

// out[block] must be the sum of the block's part of `in`; `scratch` is global memory with one
// element per thread.
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
  // Each value is defined only if all lanes ran the same iterations; the sum needs none of them.
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
    // The modern form: ordinary memory with warp barriers.
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

TEST_P(WarpSynchronous, WarpSynchronousSumIsCorrect) {
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

// Legacy reductions keep the fast form.
TEST(WarpSynchronousForm, ReductionsAreLoops) {
  EXPECT_EQ(Build(kSums[0].source).compiled.form, ThreadForm::kLoops);
  EXPECT_EQ(Build(kSums[1].source).compiled.form, ThreadForm::kLoops);
}

// A polling loop must not be split: the writing thread would wait for the polling ones.
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

// Code that cannot be split is refused, not executed out of step.
TEST(WarpSynchronousForm, DeviceFunctionsAreRefused) {
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

// Random programs of one warp over volatile memory, as source and as the result of lanes in
// lockstep.
class RandomWarp {
 public:
  explicit RandomWarp(unsigned seed) : random_(seed) { statements_ = Block(3, 6, 0); }

  std::string Source() const {
    return "__global__ void k(int* out, const int* in, int* scratch) {\n"
           "  __shared__ volatile int s[64];\n"
           "  const unsigned t = threadIdx.x;\n"
           "  unsigned a = in[t], b = t * 7, i0 = 0, i1 = 0, i2 = 0;\n"
           "  s[t] = t; s[t + 32] = 3 * t;\n" +
           Text(statements_) + "  s[t] += a + b;\n  out[t] = s[t] + s[t + 32];\n}\n";
  }

  std::vector<int> Run(const std::vector<int>& in) {
    for (unsigned t = 0; t < 32; ++t) {
      lanes_[t] = {static_cast<unsigned>(in[t]), t * 7, {}};
      memory_[t] = t;
      memory_[t + 32] = 3 * t;
    }
    Run(statements_, Lanes(32, true));
    std::vector<int> out;
    for (unsigned t = 0; t < 32; ++t) memory_[t] += lanes_[t].a + lanes_[t].b;
    for (unsigned t = 0; t < 32; ++t) out.push_back(static_cast<int>(memory_[t] + memory_[t + 32]));
    return out;
  }

 private:
  using Lanes = std::vector<bool>;
  struct Lane {
    unsigned a = 0, b = 0;
    unsigned counter[3] = {};
  };
  struct Statement {
    enum { kRead, kWrite, kAdd, kIf, kFor } what = kRead;
    unsigned x = 0, y = 0, depth = 0;
    std::vector<Statement> body;
  };

  unsigned Below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  std::vector<Statement> Block(int levels, unsigned most, unsigned depth) {
    std::vector<Statement> block(1 + Below(most));
    for (Statement& one : block) {
      const unsigned kind = Below(levels > 0 ? 10 : 6);
      one.x = Below(64);
      one.y = Below(8);
      one.depth = depth;
      if (kind < 2) {
        one.what = Statement::kRead;
      } else if (kind < 4) {
        one.what = Statement::kWrite;
      } else if (kind < 6) {
        one.what = Statement::kAdd;
      } else if (kind < 8 || depth == 3) {
        one.what = Statement::kIf;
        one.body = Block(levels - 1, 3, depth);
      } else {
        one.what = Statement::kFor;
        one.body = Block(levels - 1, 3, depth + 1);
      }
    }
    return block;
  }

  // The semantics of the source: each access is one step of all active lanes.
  static std::string Text(const std::vector<Statement>& block) {
    std::string text;
    for (const Statement& one : block) {
      const std::string x = std::to_string(one.x), y = std::to_string(one.y),
                        i = "i" + std::to_string(one.depth);
      switch (one.what) {
        case Statement::kRead:
          text += "a = a * 3 + s[(t * " + std::to_string(one.y | 1) + " + " + x + ") & 63];\n";
          break;
        case Statement::kWrite:
          text += "s[(t + " + x + ") & 63] = a + b + " + y + ";\n";
          break;
        case Statement::kAdd:
          text += "s[t] += s[(t + " + x + ") & 63]; b += s[t ^ " + y + "];\n";
          break;
        case Statement::kIf:
          text += "if (((t + " + x + ") & " + std::to_string(1 + one.y) + ") != 0) {\n" +
                  Text(one.body) + "}\n";
          break;
        case Statement::kFor:
          text += "for (" + i + " = 0; " + i + " < ((t >> " + std::to_string(one.y % 4) +
                  ") & 3) + 1; ++" + i + ") {\n" + Text(one.body) + "}\n";
      }
    }
    return text;
  }

  template <class F>
  void ForEach(const Lanes& here, F f) {
    for (unsigned t = 0; t < 32; ++t) {
      if (here[t]) f(t, lanes_[t]);
    }
  }

  void Run(const std::vector<Statement>& block, const Lanes& here) {
    for (const Statement& one : block) Run(one, here);
  }
  void Run(const Statement& one, const Lanes& here) {
    Lanes in(32);
    unsigned read[32] = {};
    switch (one.what) {
      case Statement::kRead:
        return ForEach(here, [&](unsigned t, Lane& lane) {
          lane.a = lane.a * 3 + memory_[(t * (one.y | 1) + one.x) & 63];
        });
      case Statement::kWrite:
        return ForEach(here, [&](unsigned t, Lane& lane) {
          memory_[(t + one.x) & 63] = lane.a + lane.b + one.y;
        });
      case Statement::kAdd:
        ForEach(here, [&](unsigned t, Lane&) { read[t] = memory_[t] + memory_[(t + one.x) & 63]; });
        ForEach(here, [&](unsigned t, Lane&) { memory_[t] = read[t]; });
        return ForEach(here, [&](unsigned t, Lane& lane) { lane.b += memory_[t ^ one.y]; });
      case Statement::kIf:
        ForEach(here, [&](unsigned t, Lane&) { in[t] = ((t + one.x) & (1 + one.y)) != 0; });
        return Run(one.body, in);
      case Statement::kFor:
        for (unsigned round = 0; round < 4; ++round) {
          in.assign(32, false);
          ForEach(here, [&](unsigned t, Lane&) { in[t] = round < ((t >> (one.y % 4)) & 3) + 1; });
          Run(one.body, in);
        }
    }
  }

  std::mt19937 random_;
  std::vector<Statement> statements_;
  Lane lanes_[32];
  unsigned memory_[64] = {};
};

TEST(WarpSynchronousForm, RandomProgramsRunInStep) {
  int loops = 0;
  ThreadPool pool(1);
  for (unsigned seed = 1; seed <= 6; ++seed) {
    RandomWarp program(seed);
    std::mt19937 random(seed);
    std::vector<int> in(32);
    for (int& value : in) value = static_cast<int>(random() % 1000);
    const std::vector<int> want = program.Run(in);
    for (ThreadForm form : {ThreadForm::kLoops, ThreadForm::kPerThread}) {
      Loaded loaded = Build(program.Source(), form);
      if (form == ThreadForm::kLoops && absl::IsUnimplemented(loaded.status)) continue;
      ASSERT_TRUE(loaded.status.ok()) << loaded.status << "\n" << program.Source();
      loops += form == ThreadForm::kLoops ? 1 : 0;
      std::vector<int> out(32);
      Arguments arguments{out.data(), in.data(), nullptr};
      absl::Status status =
          Launch(pool, loaded.entry, {{1, 1, 1}, {32, 1, 1}}, &arguments, nullptr);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(out, want) << "seed " << seed << (form == ThreadForm::kLoops ? ", loops" : "")
                           << "\n"
                           << program.Source();
    }
  }
  EXPECT_GT(loops, 3);
}

// Every operation with a mask; a mask without the calling thread is refused by name.
TEST(WarpMasks, MaskMustIncludeTheCaller) {
  const std::pair<const char*, const char*> operations[] = {
      {"__ballot_sync", "__ballot_sync(m, 1)"},
      {"__any_sync", "__any_sync(m, 1)"},
      {"__all_sync", "__all_sync(m, 1)"},
      {"__shfl_sync", "__shfl_sync(m, 5, 0)"},
      {"__shfl_up_sync", "__shfl_up_sync(m, 5, 1)"},
      {"__shfl_down_sync", "__shfl_down_sync(m, 5, 1)"},
      {"__shfl_xor_sync", "__shfl_xor_sync(m, 5, 1)"},
      {"__match_any_sync", "__match_any_sync(m, 5)"},
      {"__reduce_add_sync", "__reduce_add_sync(m, 5)"},
      {"__reduce_min_sync", "__reduce_min_sync(m, 5u)"},
      {"__reduce_max_sync", "__reduce_max_sync(m, 5)"},
      {"__reduce_and_sync", "__reduce_and_sync(m, 5u)"},
      {"__reduce_or_sync", "__reduce_or_sync(m, 5u)"},
      {"__reduce_xor_sync", "__reduce_xor_sync(m, 5u)"},
      {"__syncwarp", "(__syncwarp(m), 1)"},
  };
  ThreadPool pool(1);
  std::string source;
  std::vector<std::string> entries;
  for (auto& [name, call] : operations) {
    entries.push_back(std::string("k") + std::to_string(entries.size()));
    source += "__global__ void " + entries.back() + "(int* out, const int* in, int* scratch) {\n" +
              "  unsigned m = in[threadIdx.x];\n  out[threadIdx.x] = (int)" + call + ";\n}\n";
  }
  for (std::optional<ThreadForm> form :
       {std::optional<ThreadForm>(), std::optional<ThreadForm>(ThreadForm::kPerThread)}) {
    CompileRequest request{.source = source, .entries = entries, .form = form};
    absl::StatusOr<CompileResult> compiled = Compile(request);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    auto module = Module::LoadBytes(compiled->object);
    ASSERT_TRUE(module.ok()) << module.status();
    for (size_t i = 0; i < entries.size(); ++i) {
      const CompiledKernel& kernel = compiled->kernels[i];
      KernelEntry entry{.name = kernel.name,
                        .function = (*module)->Symbol(kernel.symbol),
                        .private_bytes_per_thread = kernel.private_bytes_per_thread,
                        .per_thread = kernel.form == ThreadForm::kPerThread};
      auto run = [&](unsigned mask) {
        std::vector<int> in(32, static_cast<int>(mask)), out(32);
        Arguments arguments{out.data(), in.data(), nullptr};
        return Launch(pool, entry, {{1, 1, 1}, {16, 1, 1}}, &arguments, nullptr);
      };
      EXPECT_TRUE(run(~0u).ok()) << operations[i].first;
      EXPECT_TRUE(run(0xffffu).ok()) << operations[i].first;
      for (unsigned mask : {0u, 0xfffeu, 0xffff0000u, 1u << 15}) {
        absl::Status status = run(mask);
        EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << operations[i].first << " " << mask;
        EXPECT_NE(status.message().find(std::string(operations[i].first) + ": the mask"),
                  std::string::npos)
            << status;
      }
    }
  }
}

// No other thread reads a thread's own volatile variables.
TEST(WarpSynchronousForm, PrivateVariablesNeedNoBarrier) {
  Loaded loaded = Build(R"(__global__ void k(int* out, const int* in, int* scratch) {
  volatile int x = in[threadIdx.x];
  for (int i = 0; i < 3; ++i) x = x * 2;
  out[threadIdx.x] = x;
})");
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  EXPECT_FALSE(loaded.compiled.has_barrier);
}

}  // namespace
}  // namespace stride::cpucuda
