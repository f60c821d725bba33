#include <cstring>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class KernelTest : public DeviceTest {
 protected:
  wire::Task Launch(const std::string& source, const std::string& entry, std::vector<uint32_t> grid,
                    std::vector<uint32_t> block, uint32_t shared = 0) {
    wire::Code code;
    code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
    code.mutable_source()->set_text(source);
    code.mutable_source()->add_entries(entry);
    auto module = harness().Load(code);
    EXPECT_TRUE(module.ok()) << module.status();
    wire::Task task;
    task.set_label(entry);
    wire::KernelLaunch* launch = task.mutable_kernel();
    launch->set_module(module.ok() ? *module : 0);
    launch->set_entry(entry);
    grid.resize(3, 1);
    block.resize(3, 1);
    launch->mutable_grid()->Assign(grid.begin(), grid.end());
    launch->mutable_block()->Assign(block.begin(), block.end());
    launch->set_dynamic_shared_bytes(shared);
    return task;
  }
  static void Pass(wire::Task* task, const DeviceArray& array) {
    wire::Operand* operand = task->mutable_kernel()->add_arguments()->mutable_array();
    operand->set_arena(array.arena);
    operand->set_offset(array.offset);
    operand->set_dtype(static_cast<int>(array.info.dtype));
  }
  template <typename T>
  static void PassValue(wire::Task* task, T value) {
    task->mutable_kernel()->add_arguments()->set_raw(
        std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
  }
  DeviceArray Zeros(DType dtype, std::vector<int64_t> shape) {
    return harness().Put(Make(dtype, std::move(shape), [](int64_t) { return Value(0); }));
  }
};

constexpr char kSaxpy[] = R"(
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
)";

TEST_F(KernelTest, PassesScalarsAndArrays) {
  const DeviceArray x =
      harness().Put(Make(DType::kFloat32, {1000}, [](int64_t i) { return Value(i); }));
  const DeviceArray y =
      harness().Put(Make(DType::kFloat32, {1000}, [](int64_t i) { return Value(1); }));
  wire::Task task = Launch(kSaxpy, "saxpy", {4}, {256});
  PassValue(&task, 2.0f);
  Pass(&task, x);
  Pass(&task, y);
  PassValue(&task, 900);
  ASSERT_TRUE(harness().Run(task).ok());
  const HostArray got = harness().Get(y);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(got.At(i), Value(i < 900 ? 2.0 * i + 1 : 1)) << i;
}

TEST_F(KernelTest, WrongArgumentsAreRefused) {
  const DeviceArray x = Zeros(DType::kFloat32, {16});
  const wire::Task empty = Launch(kSaxpy, "saxpy", {1}, {16});
  wire::Task task = empty;
  EXPECT_REFUSED(harness().Run(task));  // no arguments
  PassValue(&task, 2.0);                // 8 bytes for a float
  Pass(&task, x);
  Pass(&task, x);
  PassValue(&task, 16);
  EXPECT_REFUSED(harness().Run(task));  // double for float
  task = empty;
  Pass(&task, x);  // a pointer for a float
  Pass(&task, x);
  Pass(&task, x);
  PassValue(&task, 16);
  EXPECT_REFUSED(harness().Run(task));  // pointer for float
  task = empty;
  PassValue(&task, 2.0f);
  Pass(&task, x);
  Pass(&task, x);
  PassValue(&task, 16);
  task.mutable_kernel()->mutable_arguments(1)->mutable_array()->set_offset(Harness::kArenaBytes +
                                                                           1);
  EXPECT_REFUSED(harness().Run(task));  // outside the arena
  task.mutable_kernel()->mutable_arguments(1)->mutable_array()->set_offset(x.offset);
  EXPECT_TRUE(harness().Run(task).ok()) << "and right ones are taken";
  task.mutable_kernel()->set_entry("nope");
  EXPECT_FALSE(harness().Run(task).ok()) << "unknown entry";
}

TEST_F(KernelTest, ImpossibleGridsAreRefused) {
  const char* source = "extern \"C\" __global__ void nothing() {}";
  for (auto [grid, block] : {std::pair<std::vector<uint32_t>, std::vector<uint32_t>>{{1}, {1025}},
                             {{1}, {32, 64}},
                             {{1}, {1, 1, 65}},
                             {{0}, {1}},
                             {{1}, {0}},
                             {{1, 65536}, {1}},
                             {{1, 1, 65536}, {1}},
                             {{0x80000000u}, {1}}}) {
    EXPECT_REFUSED(harness().Run(Launch(source, "nothing", grid, block)));
  }
  EXPECT_REFUSED(harness().Run(Launch(source, "nothing", {1}, {1}, 1 << 30)));
  EXPECT_TRUE(harness().Run(Launch(source, "nothing", {3, 5, 7}, {2, 4, 8})).ok());
}

TEST_F(KernelTest, LaunchBoundsAreKept) {
  const char* source =
      "extern \"C\" __global__ void __launch_bounds__(64) bounded(int* p) { p[threadIdx.x] = 1; }";
  const DeviceArray p = Zeros(DType::kInt32, {1024});
  for (uint32_t threads : {64u, 65u}) {
    wire::Task task = Launch(source, "bounded", {1}, {threads});
    Pass(&task, p);
    EXPECT_EQ(harness().Run(task).ok(), threads <= 64) << threads;
  }
}

TEST_F(KernelTest, BlocksShareMemoryAndMeetAtBarriers) {
  const char* source = R"(
extern "C" __global__ void reverse(int* data) {
  __shared__ int tile[256];
  int* mine = data + blockIdx.x * 256;
  tile[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = tile[255 - threadIdx.x];
}
)";
  const DeviceArray data =
      harness().Put(Make(DType::kInt32, {64 * 256}, [](int64_t i) { return Value(i); }));
  wire::Task task = Launch(source, "reverse", {64}, {256});
  Pass(&task, data);
  ASSERT_TRUE(harness().Run(task).ok());
  const HostArray got = harness().Get(data);
  for (int64_t i = 0; i < 64 * 256; ++i)
    ASSERT_EQ(got.At(i), Value(i / 256 * 256 + 255 - i % 256)) << i;
}

TEST_F(KernelTest, DynamicSharedMemoryMayBeLarge) {
  if (!harness().subject().has_large_shared_memory) GTEST_SKIP() << "at most 48 KiB here";
  const char* source = R"(
extern __shared__ int pool[];
extern "C" __global__ void total(int* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) pool[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += pool[i];
    *out = sum;
  }
}
)";
  const DeviceArray out = Zeros(DType::kInt32, {1});
  for (int n : {1000, 12 << 10, 16 << 10, 1000}) {
    wire::Task task = Launch(source, "total", {1}, {128}, n * 4);
    Pass(&task, out);
    PassValue(&task, n);
    const absl::Status status = harness().Run(task);
    ASSERT_TRUE(status.ok()) << n * 4 << " bytes: " << status;
    EXPECT_EQ(harness().Get(out).At(0), Value(n * (n - 1.0) / 2)) << n;
  }
}

TEST_F(KernelTest, AtomicsCountEverything) {
  const char* source = R"(
extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, long long n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
)";
  constexpr int64_t kCount = 1000000;
  const DeviceArray in =
      harness().Put(Make(DType::kUInt8, {kCount}, [](int64_t i) { return Value(i % 251); }));
  const DeviceArray bins = Zeros(DType::kUInt32, {256});
  wire::Task task = Launch(source, "histogram", {32}, {256});
  Pass(&task, in);
  Pass(&task, bins);
  PassValue(&task, kCount);
  ASSERT_TRUE(harness().Run(task).ok());
  const HostArray got = harness().Get(bins);
  for (int64_t i = 0; i < 256; ++i) {
    ASSERT_EQ(got.At(i), Value(i < 251 ? (kCount - i + 250) / 251 : 0)) << "bin " << i;
  }
}

TEST_F(KernelTest, LanesOfWarpsExchangeValues) {
  const char* source = R"(
extern "C" __global__ void sums(const int* in, int* out) {
  __shared__ int parts[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int v = in[i];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o);
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  if (warp != 0) return;
  v = lane < blockDim.x / 32 ? parts[lane] : 0;
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o);
  unsigned all = __ballot_sync(~0u, lane % 2 == 0);
  if (lane == 0) out[blockIdx.x] = all == 0x55555555u ? v : -1;
}
)";
  const DeviceArray in =
      harness().Put(Make(DType::kInt32, {64 * 256}, [](int64_t i) { return Value(i); }));
  const DeviceArray out = Zeros(DType::kInt32, {64});
  wire::Task task = Launch(source, "sums", {64}, {256});
  Pass(&task, in);
  Pass(&task, out);
  ASSERT_TRUE(harness().Run(task).ok());
  const HostArray got = harness().Get(out);
  for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(got.At(i), Value(256 * 256 * i + 255 * 128)) << i;
}

TEST_F(KernelTest, TemplatesAndStructuresWork) {
  const char* source = R"(
struct Affine { double scale; int shift; char unused[3]; };
template <typename T, int N> __global__ void apply(T* data, Affine f) {
  data[threadIdx.x] = T(data[threadIdx.x] * f.scale + f.shift + N);
}
)";
  struct {
    double scale = 3;
    int shift = 4;
    char unused[3] = {};
  } affine;
  static_assert(sizeof(affine) == 16);
  const DeviceArray data =
      harness().Put(Make(DType::kInt64, {32}, [](int64_t i) { return Value(i); }));
  wire::Task task = Launch(source, "apply<long long, 5>", {1}, {32});
  Pass(&task, data);
  PassValue(&task, affine);
  ASSERT_TRUE(harness().Run(task).ok());
  const HostArray got = harness().Get(data);
  for (int64_t i = 0; i < 32; ++i) ASSERT_EQ(got.At(i), Value(3 * i + 9));
}

TEST_F(KernelTest, ThreeDimensionsAreNumberedRight) {
  const char* source = R"(
extern "C" __global__ void number(int* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
      z = blockIdx.z * blockDim.z + threadIdx.z;
  int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
  out[(z * height + y) * width + x] = x + 100 * y + 10000 * z;
}
)";
  const DeviceArray out = Zeros(DType::kInt32, {10, 9, 8});
  wire::Task task = Launch(source, "number", {4, 3, 2}, {2, 3, 5});
  Pass(&task, out);
  ASSERT_TRUE(harness().Run(task).ok());
  const HostArray got = harness().Get(out);
  for (int64_t i = 0; i < 720; ++i) {
    ASSERT_EQ(got.At(i), Value(i % 8 + 100 * (i / 8 % 9) + 10000 * (i / 72))) << i;
  }
}

TEST_F(KernelTest, AttributesAreReported) {
  wire::Code code;
  code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
  code.mutable_source()->set_text(kSaxpy);
  code.mutable_source()->add_entries("saxpy");
  auto compiled =
      harness().subject().make_compiler()->Compile(harness().subject().description.target(), code);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto object = CreateSealedCopy("object", compiled->object);
  ASSERT_TRUE(object.ok());
  wire::LoadModule load;
  load.set_module(5000);
  load.set_size(compiled->object.size());
  *load.mutable_description() = compiled->description;
  auto attributes = harness().device().LoadModule(5000, *std::move(object), load);
  ASSERT_TRUE(attributes.ok()) << attributes.status();
  ASSERT_EQ(attributes->kernels_size(), 1);
  EXPECT_EQ(attributes->kernels(0).entry(), "saxpy");
  EXPECT_GE(attributes->kernels(0).max_threads_per_block(), 256u);
  EXPECT_TRUE(harness().device().UnloadModule(5000).ok());
  EXPECT_FALSE(harness().device().UnloadModule(5000).ok());
}

TEST_F(KernelTest, DamagedObjectsAreRefused) {
  for (const std::string& object : {std::string("not code at all"),
                                    std::string("\x7f"
                                                "ELF"),
                                    std::string(100, '\0')}) {
    auto file = CreateSealedCopy("object", object);
    ASSERT_TRUE(file.ok());
    wire::LoadModule load;
    load.set_module(5001);
    load.set_size(object.size());
    load.mutable_description()->add_kernels()->set_entry("f");
    load.mutable_description()->mutable_kernels(0)->set_symbol("f");
    EXPECT_FALSE(harness().device().LoadModule(5001, *std::move(file), load).ok());
  }
}

}  // namespace
}  // namespace stride::conformance
