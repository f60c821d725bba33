// Kernels of one shape, `k(int* out, const int* in, int n)`, that together cover every feature of
// the pass. None has a race, so every correct execution order gives the same integers.
#pragma once

namespace stride::cpucuda {

struct CorpusKernel {
  const char* name;
  const char* source;
};

inline constexpr CorpusKernel kCorpus[] = {
    {"guarded", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 3 + 1;
})"},
    {"early_return_then_barrier", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = 0;
  if (i >= n) return;
  s[t] = in[i];
  __syncthreads();
  out[i] = s[t] + (t > 0 ? s[t - 1] : 7);
})"},
    {"reverse", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? in[i] : -1;
  __syncthreads();
  if (i < n) out[i] = s[blockDim.x - 1 - threadIdx.x];
})"},
    {"block_reduce", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    if (t % (2 * step) == 0 && t + step < blockDim.x) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
})"},
    {"dynamic_shared_reduce", R"(__global__ void k(int* out, const int* in, int n) {
  extern __shared__ int d[];
  int t = threadIdx.x, sum = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  d[t] = sum;
  __syncthreads();
  for (int half = 512; half > 0; half >>= 1) {
    if (t < half && t + half < blockDim.x) d[t] += d[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = d[0];
})"},
    {"inclusive_scan", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[2][1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, from = 0;
  s[0][t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d <<= 1) {
    s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  if (i < n) out[i] = s[from][t];
})"},
    {"shared_histogram", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int h[16];
  if (threadIdx.x < 16) h[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&h[in[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], h[threadIdx.x]);
})"},
    {"global_atomics", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&out[in[i] & 7], 1);
  atomicMax(&out[8], in[i]);
  atomicMin(&out[9], in[i]);
  atomicXor(&out[10], in[i]);
})"},
    {"warp_shuffle_reduce", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  if (i < n) out[i] = v;
})"},
    {"two_level_reduce", R"(__inline__ __device__ int warp_sum(int v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  return v;
}
__global__ void k(int* out, const int* in, int n) {
  __shared__ int part[32];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, lane = t % 32, warp = t / 32;
  int v = warp_sum(i < n ? in[i] : 0);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = t < (blockDim.x + 31) / 32 ? part[lane] : 0;
  if (warp == 0) v = warp_sum(t < 32 ? v : 0);
  if (t == 0) out[blockIdx.x] = v;
})"},
    {"shuffles", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : i;
  int a = __shfl_sync(~0u, v, 3), b = __shfl_up_sync(~0u, v, 2, 8), c = __shfl_down_sync(~0u, v, 5, 16);
  int d = __shfl_sync(~0u, v, threadIdx.x + 1, 4), e = __shfl_xor_sync(~0u, v, 1);
  if (i < n) out[i] = a + 3 * b + 5 * c + 7 * d + 11 * e;
})"},
    {"votes", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  unsigned b = __ballot_sync(~0u, v & 1);
  int any = __any_sync(~0u, v > 900), all = __all_sync(~0u, v >= 0);
  if (i < n) out[i] = (int)(b ^ (any << 3) ^ (all << 5));
})"},
    {"block_votes", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  int c = __syncthreads_count(v & 1), o = __syncthreads_or(v > 990), a = __syncthreads_and(v >= 0);
  if (i < n) out[i] = c * 4 + o * 2 + a;
})"},
    {"counts_after_the_first_thread_left", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  if (threadIdx.x == 0) return;
  for (int r = 0; r < 3; ++r) sum = sum * 100 + __syncthreads_count(((threadIdx.x >> r) & 1) != 0);
  if (i < n) out[i] = sum;
})"},
    {"divergent_shuffle", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0, r = 0;
  if (threadIdx.x & 1) r = __shfl_sync(0xaaaaaaaau, v, 1) + 1;
  else r = __shfl_sync(0x55555555u, v, 0) * 2;
  r += __shfl_xor_sync(~0u, r, 1);
  if (i < n) out[i] = r;
})"},
    {"ballot_in_branch", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  unsigned m = 0;
  if (v & 2) m = __ballot_sync(__activemask(), v & 4);
  else if (v & 1) m = ~__ballot_sync(__activemask(), v & 8);
  if (i < n) out[i] = (int)m;
})"},
    {"barrier_in_uniform_branch", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = i < n ? in[i] : 5;
  if (n & 1) {
    s[t] = v;
    __syncthreads();
    v += s[t ^ 1 < blockDim.x ? (t ^ 1) % blockDim.x : t];
  } else {
    v *= 2;
  }
  if (i < n) out[i] = v;
})"},
    {"uniform_loop_of_barriers", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = i < n ? in[i] : 1, rounds = n % 7 + 1;
  for (int r = 0; r < rounds; ++r) {
    s[t] = v;
    __syncthreads();
    v = v * 3 + s[(t + r + 1) % blockDim.x];
    __syncthreads();
    if (r == 4) break;
  }
  if (i < n) out[i] = v;
})"},
    {"nested_barrier_loops", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = i < n ? in[i] : 1, total = 0;
  for (int a = 0; a < 3; ++a) {
    for (int b = a; b < 4; ++b) {
      s[t] = v + b;
      __syncthreads();
      total += s[(t + a) % blockDim.x];
      __syncthreads();
    }
    v += total & 15;
  }
  if (i < n) out[i] = total;
})"},
    {"divergent_loop_of_shuffles", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0, rounds = (threadIdx.x / 32 + 1) * 2, sum = 0;
  for (int r = 0; r < rounds; ++r) sum += __shfl_sync(~0u, v + r, r);
  if (i < n) out[i] = sum;
})"},
    {"loop_with_different_exits", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0, count = 0;
  for (int r = 0; r < 40; ++r) {
    if (v == 1) break;
    v = v & 1 ? 3 * v + 1 : v / 2;
    ++count;
    if (v == 0) break;
  }
  __syncthreads();
  if (i < n) out[i] = v * 100 + count;
})"},
    {"value_after_divergent_loop", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, limit = threadIdx.x % 5 + 1, r = 0;
  while (r < limit) {
    __syncwarp();
    ++r;
  }
  __syncthreads();
  if (i < n) out[i] = r * 10 + in[i];
})"},
    {"tiled_matmul", R"(#define T 8
__global__ void k(int* out, const int* in, int n) {
  __shared__ int a[T][T], b[T][T];
  int w = 16;
  if (blockDim.x < T * T) return;
  int x = threadIdx.x % T, y = threadIdx.x / T % T, bx = blockIdx.x % 2, by = blockIdx.x / 2 % 2, sum = 0;
  bool mine = threadIdx.x < T * T && threadIdx.y == 0 && threadIdx.z == 0;
  for (int tile = 0; tile < w / T; ++tile) {
    if (mine) {
      a[y][x] = in[(by * T + y) * w + tile * T + x];
      b[y][x] = in[(tile * T + y) * w + bx * T + x];
    }
    __syncthreads();
    for (int j = 0; j < T; ++j) sum += a[y][j] * b[j][x];
    __syncthreads();
  }
  if (mine && blockIdx.x < 4) out[(by * T + y) * w + bx * T + x] = sum;
})"},
    {"naive_matmul", R"(__global__ void k(int* out, const int* in, int n) {
  int w = 24, col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= w || row >= w) return;
  int sum = 0;
  for (int j = 0; j < w; ++j) sum += in[row * w + j] * in[j * w + col];
  out[row * w + col] = sum;
})"},
    {"grid_stride", R"(__global__ void k(int* out, const int* in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) out[i] = in[i] * in[i] - 1;
})"},
    {"three_dimensions", R"(__global__ void k(int* out, const int* in, int n) {
  int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int i = blockIdx.x * blockDim.x * blockDim.y * blockDim.z + t;
  if (i < n) out[i] = threadIdx.x + 100 * threadIdx.y + 10000 * threadIdx.z + in[i];
})"},
    {"private_array", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, local[16];
  for (int j = 0; j < 16; ++j) local[j] = j * i;
  __syncthreads();
  int v = i < n ? in[i] : 0;
  local[v & 15] += v;
  __syncthreads();
  int sum = 0;
  for (int j = 0; j < 16; ++j) sum = sum * 3 + local[(j + v) & 15];
  if (i < n) out[i] = sum;
})"},
    {"private_rows", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 3;
  int rows = n % 7 + 30;
  int first[40], second[40] = {};
  unsigned char bytes[40];
  double wide[40];
  for (int j = 0; j < rows; ++j) {
    first[j] = j * v + 1;
    bytes[j] = (unsigned char)(j + v);
    wide[j] = v - j;
  }
  for (int round = 0; round < rows; ++round) {
    int sum = 0;
    for (int j = round; j < rows; ++j) {
      sum += first[j] ^ bytes[rows - 1 - j];
      second[j] += sum + (int)wide[j];
      wide[j] *= 0.5;
    }
  }
  if (v % 3 == 0) {
    for (int j = 0; j < rows; ++j) second[j] -= bytes[j];
  }
  int sum = 0;
  for (int j = 0; j < rows; ++j) sum = sum * 3 + first[j] + second[j];
  if (i < n) out[i] = sum;
})"},
    {"private_rows_between_barriers", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, kept[24], saved[24];
  for (int j = 0; j < 24; ++j) kept[j] = (i < n ? in[i] : 1) + j;
  for (int j = 0; j < 24; ++j) {
    s[t] = kept[j];
    __syncthreads();
    kept[j] += s[(t + 1) % blockDim.x];
    __syncthreads();
  }
  for (int j = 0; j < n % 24; ++j) saved[j] = kept[j];
  const int* at = kept;
  int sum = 0;
  for (int j = 0; j < n % 24; ++j) sum += *at++ * saved[n % 24 - 1 - j];
  if (i < n) out[i] = sum;
})"},
    {"private_copies", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 2, length = n % 50;
  short a[64], b[64];
  for (int j = 0; j < 64; ++j) a[j] = (short)(v + j), b[j] = -1;
  for (int round = 0; round < length; ++round) {
    for (int j = 0; j < length; ++j) b[j] = a[j];
    for (int j = 0; j < length; ++j) a[j] = (short)(b[length - 1 - j] + round);
  }
  int sum = 0;
  for (int j = 0; j < 64; ++j) sum = sum * 5 + a[j] + 2 * b[j];
  if (i < n) out[i] = sum;
})"},
    {"private_table", R"(__device__ void put(int* table, int a, int b, int k) {
  table[2 * k] = a;
  table[2 * k + 1] = b;
}
__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int table[60], k = 0;
  for (int j = 0; j < 17; ++j) put(table, 255 * j / 17, 7, k++);
  for (int j = 0; j < 13; ++j) put(table, 255 - 255 * j / 13, j * j, k++);
  float half[3] = {0.5f, 1.5f, -2.5f};
  out[i] = table[in[i] % 60] + 3 * table[(in[i] + 1) % 60] + (int)(4 * half[in[i] % 3]);
})"},
    {"mirrored_window", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0, weights = 0;
  for (int a = -4; a <= 4; ++a) {
    for (int b = -3; b <= 3; ++b) {
      int at = i + a * 5 + b;
      if (at < 0) at = -at;
      if (at > n - 1) at = n - 1 - (at - n) % n;
      if (at < 0) at = 0;
      float d = (float)(in[i] - in[at]) * 0.01f, w = 1.0f / (1 + d * d) / (2 + a * a + b * b);
      w = w * w + 0.25f * w + 0.125f;
      w = w * w + 0.5f * w + 0.0625f;
      sum += w * (float)in[at];
      weights += w;
    }
  }
  out[i] = (int)(sum * 16) + (int)(weights * 1024);
})"},
    {"many_divergent_barriers", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = i < n ? in[i] : t, sum = 0;
  s[t] = v;
  __syncthreads();
  for (int j = 0; j < v % 5; ++j) {
#pragma unroll
    for (int k = 0; k < 80; ++k) {
      __syncthreads();
      sum += s[(t + k) % blockDim.x];
    }
  }
  if (i < n) out[i] = sum;
})"},
    {"cooperative_groups", R"(#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void k(int* out, const int* in, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 0;
  int sum = cg::reduce(tile, v, cg::plus<int>());
  int most = cg::reduce(tile, v, cg::greater<int>());
  block.sync();
  unsigned odd = tile.ballot(v & 1);
  if (i < n) out[i] = sum + most * 3 + tile.shfl(v, 2) + odd + tile.thread_rank() * 1000;
})"},
    {"struct_and_template",
     R"(struct Pair { int a, b; __device__ int dot(Pair o) const { return a * o.a + b * o.b; } };
template <int N> __device__ int repeat(Pair p, int v) {
  int r = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) r += p.dot(Pair{v, i});
  return r;
}
__constant__ int weights[4] = {2, 3, 5, 7};
__global__ void k(int* out, const int* in, int n) {
  __shared__ Pair s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = Pair{i < n ? in[i] : 0, weights[t & 3]};
  __syncthreads();
  if (i < n) out[i] = repeat<5>(s[(t + 1) % blockDim.x], t);
})"},
    {"switch_and_barrier", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = i < n ? in[i] : 0;
  switch (v & 3) {
    case 0: v += 10; break;
    case 1: v *= 3; break;
    case 2: v = -v; break;
    default: v ^= 0x55;
  }
  s[t] = v;
  __syncthreads();
  switch (n % 3) {
    case 0: v += s[0]; __syncthreads(); break;
    case 1: v -= s[t]; break;
    default: __syncthreads(); v ^= s[blockDim.x - 1];
  }
  if (i < n) out[i] = v;
})"},
    {"float_math", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float_as_int(floorf(sqrtf((float)in[i]) * 64.0f)) + (int)fminf(in[i], 37.5f);
})"},
    {"loop_then_uniform_branch_around_barrier",
     R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = t, r = 0;
  do {
    v = v * 3 + in[(v ^ r) & 2047];
    if ((v & 7) < 5) continue;
    v ^= r;
  } while (++r < n % 9);
  if (n % 4 != 0) {
    s[t] = v;
    __syncthreads();
    v += s[blockDim.x - 1 - t];
  }
  if (i < n) out[i] = v;
})"},
    {"loop_with_assert_before_early_return", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = t;
  for (int r = 0; r < n % 8 + 2; ++r) {
    v = v * 3 + in[(v ^ r) & 2047];
    assert(v != -77777777);
  }
  s[t] = 0;
  if (i >= n) return;
  s[t] = v;
  __syncthreads();
  out[i] = v + (t > 0 ? s[t - 1] : 7);
})"},
    {"uniform_break_under_divergent_branch", R"(__global__ void k(int* out, const int* in, int n) {
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = t;
  for (int r = 0; r < n % 7 + 3; ++r) {
    v = v * 3 + in[i + r * 64] + r;
    if ((v & 3) == 1) {
      v ^= r * 77;
      if ((n + r) % 3 == 1) break;
      v += r * r;
    }
  }
  if (i < n) out[i] = v;
})"},
    {"grid_stride_with_breaks", R"(__global__ void k(int* out, const int* in, int n) {
  int t = threadIdx.x, sum = t;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) {
    sum = sum * 5 + in[i];
    out[i] = sum;
    if ((t & 3) == 1 && (sum & 7) == 3) break;
    if (t % 5 == 2) {
      sum -= n;
      if (n % 3 == 1) break;
      sum ^= i;
    }
  }
  __syncthreads();
  if (blockIdx.x * blockDim.x + t < n) out[blockIdx.x * blockDim.x + t] += sum;
})"},
    {"counter_with_late_breaks", R"(__global__ void k(int* out, const int* in, int n) {
  int t = threadIdx.x, g = blockIdx.x * blockDim.x + t, sum = t;
  for (int r = 0; r < n % 7 + 2; ++r) {
    sum = sum * 5 + in[g + r * 64];
    if (t % 5 == 2) {
      sum -= n;
      if ((n + r) % 5 == 1) break;
      sum = sum * 3 ^ r;
    }
  }
  __syncthreads();
  if (g < n) out[g] = sum;
})"},
    {"swapped_in_loop", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, a = i < n ? in[i] : 3, b = t;
  for (int r = 0; r < n % 5 + 2; ++r) {
    s[t] = a;
    __syncthreads();
    int c = a + s[(t + 1) % blockDim.x];
    a = b;
    b = c;
    __syncthreads();
  }
  if (i < n) out[i] = a * 31 + b;
})"},
    {"last_block_flag", R"(__global__ void k(int* out, const int* in, int n) {
  __shared__ bool first;
  __shared__ int seen;
  if (threadIdx.x == 0) { first = blockIdx.x == 0; seen = 0; }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (first) {
    atomicAdd(&seen, i < n ? in[i] & 3 : 0);
    __syncthreads();
    if (i < n) out[i] = seen;
  } else if (i < n) {
    out[i] = -in[i];
  }
})"},
    {"cub_block", R"(#include <cub/cub.cuh>
__global__ void k(int* out, const int* in, int n) {
  typedef cub::BlockReduce<int, 1024> Reduce;
  typedef cub::BlockScan<int, 1024> Scan;
  typedef cub::BlockRadixSort<int, 1024, 2, int> Sort;
  __shared__ typename Reduce::TempStorage reduce;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  int v = i < n ? in[i] : 0, sum = Reduce(reduce).Sum(v), before, all;
  Scan().ExclusiveSum(v, before, all);
  int keys[2] = {v, v / 3}, values[2] = {2 * t, 2 * t + 1};
  for (int round = 0; round < 2; ++round) {
    if (round == 0) Sort().Sort(keys, values);
    else Sort().SortDescending(keys, values);
  }
  if (i < n) out[i] = before + all + keys[0] * 3 + values[1] + (t == 0 ? sum : 0);
})"},
    {"cub_functors_without_const", R"(#include <cub/cub.cuh>
struct Difference {
  template <class T> __device__ T operator()(T& a, T& b) { return a - b; }
};
struct Differ {
  __device__ bool operator()(int& a, int& b) { return a != b; }
};
struct Most {
  template <class T> __device__ T operator()(T& a, T& b) { return a < b ? b : a; }
};
__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] % 3 : 0;
  int items[1] = {v}, left[1], right[1], heads[1], scan, most;
  cub::BlockAdjacentDifference<int, 1024>().SubtractLeft(items, left, Difference());
  cub::BlockAdjacentDifference<int, 1024>().SubtractRight(items, right, Difference());
  cub::BlockDiscontinuity<int, 1024>().FlagHeads(heads, items, Differ());
  cub::BlockScan<int, 1024>().InclusiveScan(v, scan, Most());
  most = cub::BlockReduce<int, 1024>().Reduce(v, Most());
  int warp;
  cub::WarpScan<int>().ExclusiveScan(v, warp, 0, Most());
  if (i < n) out[i] = left[0] + 3 * right[0] + 5 * heads[0] + 7 * scan + 11 * warp + (threadIdx.x == 0 ? most : 0);
})"},
    {"cub_warp", R"(#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 1, scan, sum, last = 0;
  cub::WarpScan<int, 8>().InclusiveSum(v, scan);
  sum = cub::WarpReduce<int>().HeadSegmentedSum(v, v % 4 == 0);
  if (threadIdx.x < 32) last = cub::WarpReduce<int>().Reduce(v, cub::Max());
  if (i < n) out[i] = scan * 3 + sum + (threadIdx.x == 0 ? last : 0);
})"},
    {"partitions_of_warps", R"(#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 0;
  auto active = cg::coalesced_threads();
  auto same = cg::labeled_partition(active, v % 5);
  auto half = cg::binary_partition(active, v % 2 == 0);
  int a = cg::reduce(same, v, cg::plus<int>()), b = cg::inclusive_scan(half, v);
  cg::thread_group group = cg::tiled_partition(cg::this_thread_block(), 8);
  group.sync();
  if (i < n) out[i] = a + 3 * b + 5 * same.meta_group_rank() + 7 * (int)group.thread_rank();
})"},
    {"special_registers", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane, below, ctaid, result;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(below));
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(ctaid));
  asm volatile("bar.sync 0;" ::: "memory");
  asm("{ .reg .pred p; setp.gt.u32 p, %1, 7; @p mad.lo.u32 %0, %1, %2, %3; @!p mov.u32 %0, %3; }"
      : "=&r"(result) : "r"(lane), "r"(below), "r"(ctaid));
  if (i < n) out[i] = (int)result;
})"},
    {"heap_of_the_device", R"(__global__ void k(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* mine = new int[4];
  for (int j = 0; j < 4; ++j) mine[j] = i < n ? in[i] + j : j;
  __syncthreads();
  if (i < n) out[i] = mine[0] * mine[3];
  delete[] mine;
})"},
};

}  // namespace stride::cpucuda
