// cpu_kernels_bench: CUDA kernels on the CPU device against plain C++ loops that do the same, one
// thread against one and all cores against all, in turns. Every result is checked.
#include <cblas.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/device/check.h"
#include "bench/device/main.h"
#include "bench/device/plain.h"
#include "bench/service/report.h"
#include "cpucuda/cpucuda.h"
#include "server/worker/cpu/lower/blas.h"

namespace stride::bench {
namespace {

constexpr char kUsage[] =
    "Usage: cpu_kernels_bench [--elements=N] [--matrix=N] [--rounds=N] [--only=ID] [--json=FILE]\n"
    "       --matrix is a multiple of 16; --only keeps the rows whose id holds the word\n";

constexpr char kSource[] = R"(
__global__ void add(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
__global__ void expression(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = cosf(a[i]) * cosf(a[i]) + sinf(a[i]) * sinf(a[i]);
}
__global__ void elu(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 1.05f * (a[i] > 0 ? a[i] : 1.67f * expf(a[i]) - 1.67f);
}
__global__ void saxpy(const float* a, const float* b, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    out[i] = 2.5f * a[i] + out[i];
}
__global__ void block_reduce(const float* a, const float* b, float* out, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = a[blockIdx.x * 256 + t];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void shuffle_reduce(const float* a, const float* b, float* out, int n) {
  __shared__ float s[8];
  int t = threadIdx.x;
  float v = a[blockIdx.x * 256 + t];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (t % 32 == 0) s[t / 32] = v;
  __syncthreads();
  if (t == 0) {
    v = s[0];
    for (int i = 1; i < 8; ++i) v += s[i];
    out[blockIdx.x] = v;
  }
}
__global__ void grid_reduce(const float* a, const float* b, float* out, int n) {
  extern __shared__ float d[];
  int t = threadIdx.x;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += a[i];
  d[t] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) d[t] += d[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = d[0];
}
__global__ void histogram_shared(const int* a, int* counts, int n) {
  __shared__ int h[256];
  h[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&h[a[i] & 255], 1);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], h[threadIdx.x]);
}
__global__ void histogram_global(const int* a, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[a[i] & 255], 1);
}
__global__ void tiled_product(const float* a, const float* b, float* out, int n) {
  __shared__ float left[16][16], right[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += left[y][j] * right[j][x];
    __syncthreads();
  }
  out[row * n + column] = sum;
}
__global__ void naive_product(const float* a, const float* b, float* out, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  out[row * n + column] = sum;
}
// A recurrence over an array of each thread's own.
__global__ void local_array(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float rates[64];
  for (int k = 0; k < 64; ++k) rates[k] = 0.05f + 0.0001f * a[i];
  for (int step = 0; step < 16; ++step) {
    float v = 0;
    for (int k = step + 1; k < 64; ++k) {
      float rate = 0.002f * b[k];
      v += rate * rates[k] / (1 + 0.25f * rates[k]);
      rates[k] *= expf(rate * v - 0.1f * rate);
    }
  }
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += rates[k];
  out[i] = sum;
}
// A filter whose window is mirrored at the image's edges.
__global__ void window(const float* a, const float* b, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float middle = a[y * n + x], sum = 0, weights = 0;
  for (int i = -4; i <= 4; ++i) {
    for (int j = -4; j <= 4; ++j) {
      int row = y + i, column = x + j;
      if (row < 0) row = -row;
      if (row >= n) row = 2 * n - 2 - row;
      if (column < 0) column = -column;
      if (column >= n) column = 2 * n - 2 - column;
      float value = a[row * n + column], d = middle - value;
      float weight = expf(-d * d * 0.5f - (float)(i * i + j * j) * 0.1f);
      sum += weight * value;
      weights += weight;
    }
  }
  out[y * n + x] = sum / weights;
}
// Bytes replaced by those of a table, several times over.
__global__ void byte_table(const unsigned char* in, unsigned char* out, const unsigned char* table,
                           int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i + 3 >= n) return;
  unsigned char s[4];
  for (int k = 0; k < 4; ++k) s[k] = in[4 * i + k];
  for (int round = 0; round < 16; ++round) {
    unsigned char first = s[0];
    for (int k = 0; k < 3; ++k) s[k] = table[s[k + 1] ^ round] ^ (s[k] >> 3);
    s[3] = table[first] ^ round;
  }
  for (int k = 0; k < 4; ++k) out[4 * i + k] = s[k];
}
// A vector's direction as a place on a wheel of 55 colors, its length as their strength. The wheel is
// that of Baker et al., "A Database and Evaluation Methodology for Optical Flow", 2011.
__device__ void wheel(int k, float* color) {
  if (k < 15) {
    color[0] = 1, color[1] = k / 15.0f, color[2] = 0;
  } else if (k < 21) {
    color[0] = 1 - (k - 15) / 6.0f, color[1] = 1, color[2] = 0;
  } else if (k < 25) {
    color[0] = 0, color[1] = 1, color[2] = (k - 21) / 4.0f;
  } else if (k < 36) {
    color[0] = 0, color[1] = 1 - (k - 25) / 11.0f, color[2] = 1;
  } else if (k < 49) {
    color[0] = (k - 36) / 13.0f, color[1] = 0, color[2] = 1;
  } else {
    color[0] = 1, color[1] = 0, color[2] = 1 - (k - 49) / 6.0f;
  }
}
__global__ void color_wheel(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i] * 0.25f, y = b[i] * 0.03f - 1.1f, length = sqrtf(x * x + y * y);
  float place = (atan2f(-y, -x) * 0.318309886f + 1) * 27;
  int k = (int)place;
  float share = place - k, first[3], second[3], sum = 0;
  wheel(k % 55, first);
  wheel((k + 1) % 55, second);
  for (int channel = 0; channel < 3; ++channel) {
    float color = (1 - share) * first[channel] + share * second[channel];
    color = length <= 1 ? 1 - length * (1 - color) : color * 0.75f;
    sum += (channel + 1) * color;
  }
  out[i] = sum;
}
// Each thread leaves its loop in a round of its own.
__global__ void early_exit(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float cx = a[i] * 0.4f, cy = b[i] * 0.02f - 0.7f, x = 0, y = 0;
  int round = 0;
  while (round < 64 && x * x + y * y < 4) {
    float next = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = next;
    ++round;
  }
  out[i] = (float)round;
}
)";

struct Options {
  int64_t elements = 10'000'128;  // 256 * 39063
  int matrix = 512;
  int rounds = 9;
  std::string only, json;
};

std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    const int64_t number = std::atoll(value.c_str());
    if (name == "--only")
      options.only = value;
    else if (name == "--json")
      options.json = value;
    else if (number <= 0 || number > 1 << 30)
      return std::nullopt;
    else if (name == "--elements")
      options.elements = (number + 255) / 256 * 256;
    else if (name == "--matrix" && number % 16 == 0)
      options.matrix = static_cast<int>(number);
    else if (name == "--rounds")
      options.rounds = static_cast<int>(number);
    else
      return std::nullopt;
  }
  return options;
}

// The kernels of kSource, ready to be launched.
class Kernels {
 public:
  Kernels() {
    auto compiled = Expect(cpucuda::Compile({.source = kSource}));
    module_ = Expect(cpucuda::Module::LoadBytes(compiled.object));
    kernels_ = std::move(compiled.kernels);
  }
  void Launch(cpucuda::ThreadPool& pool, const std::string& name, cpucuda::LaunchConfig launch,
              const void* parameters) const {
    for (const cpucuda::CompiledKernel& kernel : kernels_) {
      if (kernel.name != name) continue;
      cpucuda::KernelEntry entry{.name = name,
                                 .function = module_->Symbol(kernel.symbol),
                                 .static_shared_bytes = kernel.static_shared_bytes,
                                 .private_bytes_per_thread = kernel.private_bytes_per_thread,
                                 .per_thread = kernel.form == cpucuda::ThreadForm::kPerThread};
      Check(cpucuda::Launch(pool, entry, launch, parameters, nullptr));
      return;
    }
    Die("no kernel " + name);
  }

 private:
  std::unique_ptr<cpucuda::Module> module_;
  std::vector<cpucuda::CompiledKernel> kernels_;
};

class Bench {
 public:
  Bench(const Options& options, Report& report)
      : options_(options),
        num_cores_(static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))),
        a_(options.elements),
        b_(options.elements),
        out_(options.elements),
        want_(options.elements),
        integers_(options.elements),
        report_(report) {
    for (int64_t i = 0; i < options.elements; ++i) {
      a_[i] = static_cast<float>(i % 1000) * 0.01f - 5;
      b_[i] = static_cast<float>(i % 77);
      integers_[i] = static_cast<int32_t>(i * 2654435761u >> 7);
    }
  }

  void Run() {
    report_.Section("CUDA kernels and products on the CPU device, without a daemon");
    Elementwise();
    Reductions();
    Histograms();
    Products();
    PrivateValues();
    for (bool wide : {false, true}) Blas(wide);
  }

 private:
  using Work = std::function<void(cpucuda::ThreadPool&)>;

  // Both once unmeasured, then `check`, then in turns; with one thread and with all cores.
  void Compare(const std::string& id, const Work& ours, const std::string& baseline_name,
               const Work& baseline, const std::function<void()>& check) {
    if (id.find(options_.only) == std::string::npos) return;
    std::vector<int> threads = {1};
    if (num_cores_ > 1) threads.push_back(num_cores_);
    for (int num_threads : threads) {
      cpucuda::ThreadPool pool(num_threads);
      const bool all = num_threads > 1;
      Times our_times, their_times;
      baseline(pool);
      ours(pool);
      if (check) check();
      for (int i = 0; i < options_.rounds; ++i) {
        our_times.Add(SecondsOf([&] { ours(pool); }));
        their_times.Add(SecondsOf([&] { baseline(pool); }));
      }
      report_.Add({.id = id + (all ? "/all" : "/one") + "/cpu:0",
                   .what = id + (all ? ", all cores" : ", one thread"),
                   .ours = our_times,
                   .baseline_name = baseline_name,
                   .baseline = their_times});
    }
  }

  // Equal shares of the items for the pool's threads.
  static void Share(cpucuda::ThreadPool& pool, int64_t num_items,
                    const std::function<void(int64_t, int64_t)>& work) {
    const int64_t grain =
        std::max<int64_t>(1, (num_items + pool.num_threads() - 1) / pool.num_threads());
    pool.ParallelFor(num_items, grain, [&](int64_t begin, int64_t end, int) { work(begin, end); });
  }

  struct Arrays {
    const float* a;
    const float* b;
    float* out;
    int n;
  };
  struct Counting {
    const int32_t* a;
    int32_t* counts;
    int n;
  };
  int n() const { return static_cast<int>(options_.elements); }
  uint32_t NumBlocks() const { return static_cast<uint32_t>(options_.elements / 256); }

  Work Kernel(const std::string& name, cpucuda::LaunchConfig launch) {
    return [this, name, launch](cpucuda::ThreadPool& pool) {
      Arrays arrays{a_.data(), b_.data(), out_.data(), n()};
      kernels_.Launch(pool, name, launch, &arrays);
    };
  }
  Work Loop(std::function<void(int64_t, int64_t)> loop) {
    return [this, loop](cpucuda::ThreadPool& pool) { Share(pool, options_.elements, loop); };
  }
  std::function<void()> Close(const std::string& id, int64_t count, double tolerance) {
    return [this, id, count, tolerance] {
      for (int64_t i = 0; i < count; ++i) {
        if (!(std::fabs(out_[i] - want_[i]) <= tolerance * (1 + std::fabs(want_[i]))))
          Die(id + ": element " + std::to_string(i) + " is " + std::to_string(out_[i]) + ", not " +
              std::to_string(want_[i]));
      }
    };
  }

  void Elementwise() {
    const cpucuda::LaunchConfig guarded{{NumBlocks(), 1, 1}, {256, 1, 1}};
    const float *a = a_.data(), *b = b_.data();
    float* out = want_.data();
    const char* loop = "the same loop in C++";
    Compare("add", Kernel("add", guarded), loop,
            Loop([=](int64_t from, int64_t to) { plain::Add(a, b, out, from, to); }),
            Close("add", n(), 0));
    Compare("expression", Kernel("expression", guarded), loop,
            Loop([=](int64_t from, int64_t to) { plain::SquaresOfCosAndSin(a, out, from, to); }),
            Close("expression", n(), 1e-6));
    Compare("elu", Kernel("elu", guarded), loop,
            Loop([=](int64_t from, int64_t to) { plain::Elu(a, out, from, to); }),
            Close("elu", n(), 1e-6));
    // In place, so that both must have run equally often: checked by the first turn alone.
    std::fill(out_.begin(), out_.end(), 1.0f);
    std::fill(want_.begin(), want_.end(), 1.0f);
    Compare("saxpy_grid_stride", Kernel("saxpy", {{160, 1, 1}, {256, 1, 1}}), loop,
            Loop([=](int64_t from, int64_t to) { plain::Saxpy(a, out, from, to); }),
            Close("saxpy_grid_stride", n(), 1e-4));
  }

  void Reductions() {
    const cpucuda::LaunchConfig blocks{{NumBlocks(), 1, 1}, {256, 1, 1}};
    const float* a = a_.data();
    float* out = want_.data();
    auto by_blocks = [&](auto function) -> Work {
      return [this, function, a, out](cpucuda::ThreadPool& pool) {
        Share(pool, NumBlocks(), [=](int64_t from, int64_t to) { function(a, out, from, to); });
      };
    };
    Compare("block_reduce", Kernel("block_reduce", blocks), "sums of 256 by halves in C++",
            by_blocks(plain::BlockSumsByHalves), Close("block_reduce", NumBlocks(), 1e-4));
    Compare("block_reduce_in_order", Kernel("block_reduce", blocks), "sums of 256 in order in C++",
            by_blocks(plain::BlockSums), Close("block_reduce", NumBlocks(), 1e-4));
    Compare("shuffle_reduce", Kernel("shuffle_reduce", blocks), "sums of 256 by halves in C++",
            by_blocks(plain::BlockSumsByHalves), Close("shuffle_reduce", NumBlocks(), 1e-4));
    Compare("grid_reduce", Kernel("grid_reduce", {{160, 1, 1}, {256, 1, 1}, 1024}),
            "a vectorised sum in C++", Loop([=](int64_t from, int64_t to) {
              out[from == 0 ? 0 : 1] = plain::Sum(a, from, to);
            }),
            nullptr);
  }

  void Histograms() {
    std::vector<int32_t> got(256), want(256);
    Work loop = [&](cpucuda::ThreadPool& pool) {
      std::fill(want.begin(), want.end(), 0);
      std::vector<std::vector<int32_t>> parts(pool.num_threads(), std::vector<int32_t>(256));
      const int64_t grain = (options_.elements + pool.num_threads() - 1) / pool.num_threads();
      pool.ParallelFor(options_.elements, grain, [&](int64_t from, int64_t to, int) {
        plain::Histogram(integers_.data(), parts[from / grain].data(), from, to);
      });
      for (const auto& part : parts) {
        for (int i = 0; i < 256; ++i) want[i] += part[i];
      }
    };
    auto kernel = [&](const std::string& name, uint32_t blocks) -> Work {
      return [this, &got, name, blocks](cpucuda::ThreadPool& pool) {
        std::fill(got.begin(), got.end(), 0);
        Counting counting{integers_.data(), got.data(), n()};
        kernels_.Launch(pool, name, {{blocks, 1, 1}, {256, 1, 1}}, &counting);
      };
    };
    auto check = [&] {
      if (got != want) Die("the histograms differ");
    };
    Compare("histogram_shared", kernel("histogram_shared", 160), "a counter for each thread in C++",
            loop, check);
    Compare("histogram_global", kernel("histogram_global", NumBlocks()),
            "a counter for each thread in C++", loop, check);
  }

  void Products() {
    const int size = options_.matrix;
    const auto tiles = static_cast<uint32_t>(size / 16);
    std::vector<float> left(size * size), right(size * size), got(size * size), want(size * size);
    for (int i = 0; i < size * size; ++i) {
      left[i] = static_cast<float>(i % 17) / 16;
      right[i] = static_cast<float>(i % 23) / 16;
    }
    auto kernel = [&](const std::string& name) -> Work {
      return [&, name](cpucuda::ThreadPool& pool) {
        Arrays arrays{left.data(), right.data(), got.data(), size};
        kernels_.Launch(pool, name, {{tiles, tiles, 1}, {16, 16, 1}}, &arrays);
      };
    };
    auto check = [&] {
      for (int i = 0; i < size * size; ++i) {
        if (!(std::fabs(got[i] - want[i]) <= 1e-4 * want[i] + 1e-4)) Die("the products differ");
      }
    };
    Work tiled = [&](cpucuda::ThreadPool& pool) {
      Share(pool, tiles, [&](int64_t from, int64_t to) {
        plain::TiledProduct(left.data(), right.data(), want.data(), size, from, to);
      });
    };
    Work rows = [&](cpucuda::ThreadPool& pool) {
      Share(pool, size, [&](int64_t from, int64_t to) {
        plain::Product(left.data(), right.data(), want.data(), size, from, to);
      });
    };
    Compare("tiled_product", kernel("tiled_product"), "the same tiles in C++", tiled, check);
    Compare("tiled_product_by_rows", kernel("tiled_product"), "ikj loops in C++", rows, check);
    Compare("naive_product", kernel("naive_product"), "ikj loops in C++", rows, check);
  }

  // Arrays, windows, tables and counts of single threads.
  void PrivateValues() {
    const int few =
        static_cast<int>(std::min<int64_t>(options_.elements / 32 / 256 * 256, 1 << 18));
    const float *a = a_.data(), *b = b_.data();
    float* out = want_.data();
    auto share = [this](int64_t items, std::function<void(int64_t, int64_t)> work) -> Work {
      return
          [items, work = std::move(work)](cpucuda::ThreadPool& pool) { Share(pool, items, work); };
    };
    auto kernel = [&](const std::string& name, int n, cpucuda::LaunchConfig launch) -> Work {
      return [this, name, n, launch](cpucuda::ThreadPool& pool) {
        Arrays arrays{a_.data(), b_.data(), out_.data(), n};
        kernels_.Launch(pool, name, launch, &arrays);
      };
    };
    const char* loop = "the same loop in C++";
    const cpucuda::LaunchConfig rows{{static_cast<uint32_t>(few / 256), 1, 1}, {256, 1, 1}};
    Compare("local_array", kernel("local_array", few, rows), loop,
            share(few, [=](int64_t from, int64_t to) { plain::LocalArray(a, b, out, from, to); }),
            Close("local_array", few, 1e-4));
    Compare("early_exit", Kernel("early_exit", {{NumBlocks(), 1, 1}, {256, 1, 1}}), loop,
            Loop([=](int64_t from, int64_t to) { plain::EarlyExit(a, b, out, from, to); }),
            nullptr);
    Compare("color_wheel", Kernel("color_wheel", {{NumBlocks(), 1, 1}, {256, 1, 1}}), loop,
            Loop([=](int64_t from, int64_t to) { plain::ColorWheel(a, b, out, from, to); }),
            Close("color_wheel", n(), 1e-4));
    const int side = options_.matrix;
    const auto tiles = static_cast<uint32_t>(side / 16);
    Compare("window", kernel("window", side, {{tiles, tiles, 1}, {16, 16, 1}}), loop,
            share(side, [=](int64_t from, int64_t to) { plain::Window(a, out, side, from, to); }),
            Close("window", int64_t{side} * side, 1e-5));
    ByteTable(loop);
  }

  void ByteTable(const char* loop) {
    struct Bytes {
      const uint8_t* in;
      uint8_t* out;
      const uint8_t* table;
      int n;
    };
    const int n = static_cast<int>(options_.elements);
    std::vector<uint8_t> in(n), got(n), want(n), table(256);
    for (int i = 0; i < n; ++i) in[i] = static_cast<uint8_t>(integers_[i]);
    for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i * 167 + 13);
    Work ours = [&](cpucuda::ThreadPool& pool) {
      Bytes bytes{in.data(), got.data(), table.data(), n};
      kernels_.Launch(pool, "byte_table", {{(NumBlocks() + 3) / 4, 1, 1}, {256, 1, 1}}, &bytes);
    };
    Work theirs = [&](cpucuda::ThreadPool& pool) {
      Share(pool, n / 4, [&](int64_t from, int64_t to) {
        plain::ByteTable(in.data(), want.data(), table.data(), from, to);
      });
    };
    Compare("byte_table", ours, loop, theirs, [&] {
      if (got != want) Die("the bytes differ");
    });
  }

  // The device's matmul without a daemon.
  void Blas(bool wide) {
    const int size = 2 * options_.matrix;
    const int64_t item = wide ? 8 : 4;
    std::vector<std::byte> left(size * size * item), right = left, got = left, want = left;
    for (int64_t i = 0; i < int64_t{size} * size; ++i) {
      if (wide) {
        reinterpret_cast<double*>(left.data())[i] = static_cast<double>(i % 17);
        reinterpret_cast<double*>(right.data())[i] = static_cast<double>(i % 23);
      } else {
        reinterpret_cast<float*>(left.data())[i] = static_cast<float>(i % 17);
        reinterpret_cast<float*>(right.data())[i] = static_cast<float>(i % 23);
      }
    }
    auto view = [&](std::vector<std::byte>& m) {
      return cpu::MatrixView{m.data(), size, size, size * item, item};
    };
    Work ours = [&](cpucuda::ThreadPool& pool) {
      cpu::SetBlasThreads(pool.num_threads());
      Check(cpu::MultiplyByBlas(wide ? DType::kFloat64 : DType::kFloat32, view(left), view(right),
                                view(got)));
    };
    Work direct = [&](cpucuda::ThreadPool& pool) {
      cpu::SetBlasThreads(pool.num_threads());
      if (wide) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1,
                    reinterpret_cast<double*>(left.data()), size,
                    reinterpret_cast<double*>(right.data()), size, 0,
                    reinterpret_cast<double*>(want.data()), size);
      } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1,
                    reinterpret_cast<float*>(left.data()), size,
                    reinterpret_cast<float*>(right.data()), size, 0,
                    reinterpret_cast<float*>(want.data()), size);
      }
    };
    Compare(wide ? "matmul_float64" : "matmul_float32", ours, "OpenBLAS directly", direct, [&] {
      if (got != want) Die("the matrix products differ");
    });
  }

  const Options options_;
  const int num_cores_;
  const Kernels kernels_;
  std::vector<float> a_, b_, out_, want_;
  std::vector<int32_t> integers_;
  Report& report_;
};

}  // namespace
}  // namespace stride::bench

int main(int argc, char** argv) {
  using namespace stride::bench;
  return RunProgram(Parse(argc, argv), kUsage,
                    [](const Options& options, Report& report) { Bench(options, report).Run(); });
}
