#include <cstring>

#include "tests/conformance/device/kernel_fixture.h"

namespace stride::conformance {
namespace {

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

TEST_F(KernelTest, BlocksShareMemoryAndSynchronize) {
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
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i]], 1u);
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

TEST_F(KernelTest, ThreeDimensionalIndicesAreCorrect) {
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

constexpr char kGlobals[] = R"(
namespace physics { __constant__ float factors[4] = {1, 2, 3, 4}; }
static __constant__ int bias = 10;
template <typename T> __device__ T total;
extern "C" __global__ void show(float* out, int* sum) {
  out[threadIdx.x] = physics::factors[threadIdx.x] + bias;
  if (threadIdx.x == 0) *sum = ++total<int>;
}
)";
const std::vector<std::string> kGlobalNames = {"physics::factors", "bias", "total<int>"};

using Doubles = std::vector<double>;

// A constant that a launch does not name has the source's value, whatever earlier launches set.
// Other variables keep their value from the last launch.
TEST_F(KernelTest, GlobalsArePartOfTheLaunch) {
  const DeviceArray out = Zeros(DType::kFloat32, {4}), sum = Zeros(DType::kInt32, {1});
  wire::Task plain = Launch(kGlobals, "show", {1}, {4}, 0, kGlobalNames);
  Pass(&plain, out);
  Pass(&plain, sum);
  ASSERT_TRUE(harness().Run(plain).ok());
  EXPECT_EQ(Values(out, 4), (Doubles{11, 12, 13, 14}));
  const double first = Values(sum, 1)[0];

  const DeviceArray factors =
      harness().Put(Make(DType::kFloat32, {4}, [](int64_t i) { return Value(100 * i); }));
  wire::Task set = plain;
  SetGlobal(&set, "physics::factors", factors);
  SetGlobal<int>(&set, "bias", {1});
  SetGlobal<int>(&set, "total<int>", {40});
  ASSERT_TRUE(harness().Run(set).ok());
  EXPECT_EQ(Values(out, 4), (Doubles{1, 101, 201, 301}));
  EXPECT_EQ(Values(sum, 1), Doubles{41});

  // Two of the four: the others have the source's values again.
  wire::Task part = plain;
  SetGlobal<float>(&part, "physics::factors", {7, 8});
  ASSERT_TRUE(harness().Run(part).ok());
  EXPECT_EQ(Values(out, 4), (Doubles{17, 18, 13, 14}));
  EXPECT_EQ(Values(sum, 1), Doubles{42});

  ASSERT_TRUE(harness().Run(plain).ok());
  EXPECT_EQ(Values(out, 4), (Doubles{11, 12, 13, 14}));
  EXPECT_EQ(Values(sum, 1), Doubles{43});
  EXPECT_EQ(first, 1);
}

// Values of tasks that are queued together do not mix.
TEST_F(KernelTest, GlobalsAreSetInOrder) {
  constexpr int kLaunches = 200;
  const DeviceArray sum = Zeros(DType::kInt32, {1});
  std::vector<DeviceArray> outs;
  uint64_t last = 0;
  for (int i = 0; i < kLaunches; ++i) {
    outs.push_back(Zeros(DType::kFloat32, {4}));
    wire::Task task = Launch(kGlobals, "show", {1}, {4}, 0, kGlobalNames);
    Pass(&task, outs.back());
    Pass(&task, sum);
    if (i % 3 != 0) SetGlobal<int>(&task, "bias", {i});
    last = harness().Submit(task);
  }
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  for (int i = 0; i < kLaunches; ++i)
    ASSERT_EQ(Values(outs[i], 4)[1], 2 + (i % 3 != 0 ? i : 10)) << i;
}

TEST_F(KernelTest, WrongGlobalsAreRefused) {
  const DeviceArray out = Zeros(DType::kFloat32, {64}), sum = Zeros(DType::kInt32, {1});
  wire::Task plain = Launch(kGlobals, "show", {1}, {4}, 0, kGlobalNames);
  Pass(&plain, out);
  Pass(&plain, sum);
  wire::Task task = plain;
  SetGlobal<int>(&task, "bias", {1, 2});
  EXPECT_REFUSED(harness().Run(task));
  task = plain;
  SetGlobal(&task, "physics::factors", out);
  EXPECT_REFUSED(harness().Run(task));
  task = plain;
  SetGlobal<int>(&task, "other", {1});
  EXPECT_REFUSED(harness().Run(task));
  task = plain;
  SetGlobal(&task, "physics::factors", sum);
  task.mutable_kernel()->mutable_globals(0)->mutable_array()->set_offset(Harness::kArenaBytes - 2);
  EXPECT_REFUSED(harness().Run(task));
  EXPECT_TRUE(harness().Run(plain).ok());
  EXPECT_EQ(Values(out, 4), (Doubles{11, 12, 13, 14}));
}

TEST_F(KernelTest, GlobalsAreDescribed) {
  wire::Code code;
  code.mutable_source()->set_kind(wire::Source::KIND_CUDA_CPP);
  code.mutable_source()->set_text(kGlobals);
  for (const std::string& name : kGlobalNames) code.mutable_source()->add_globals(name);
  auto compiler = harness().subject().make_compiler();
  const std::string target = harness().subject().description.target();
  auto compiled = compiler->Compile(target, code);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const auto& globals = compiled->description.globals();
  ASSERT_EQ(globals.size(), 3);
  EXPECT_EQ(globals[0].name(), "physics::factors");
  EXPECT_EQ(globals[0].size(), 16u);
  EXPECT_TRUE(globals[0].constant());
  EXPECT_EQ(globals[0].dtype(), static_cast<int>(DType::kFloat32));
  EXPECT_EQ(globals[1].size(), 4u);
  EXPECT_EQ(globals[2].dtype(), static_cast<int>(DType::kInt32));
  EXPECT_FALSE(globals[2].constant());
  code.mutable_source()->set_globals(1, "nothing");
  auto wrong = compiler->Compile(target, code);
  EXPECT_TRUE(absl::IsNotFound(wrong.status())) << wrong.status();
  EXPECT_NE(wrong.status().message().find("factors"), absl::string_view::npos) << wrong.status();
}

TEST_F(KernelTest, StructuresHoldArrays) {
  const char* source = R"(
struct View { float* data; int offset; int pad; const float* other; };
extern "C" __global__ void add(int before, View view, int n) {
  int i = threadIdx.x;
  if (i < n) view.data[i + view.offset] = view.other[i] + before;
}
)";
  const DeviceArray data = Zeros(DType::kFloat32, {10});
  const DeviceArray other =
      harness().Put(Make(DType::kFloat32, {8}, [](int64_t i) { return Value(i); }));
  wire::Task task = Launch(source, "add", {1}, {8});
  PassValue(&task, 5);
  auto* aggregate = task.mutable_kernel()->add_arguments()->mutable_aggregate();
  aggregate->set_raw(std::string(24, '\0'));
  const int offset = 2;
  aggregate->mutable_raw()->replace(8, 4, std::string(reinterpret_cast<const char*>(&offset), 4));
  for (auto [at, array] : {std::pair(0, &data), std::pair(16, &other)}) {
    auto* pointer = aggregate->add_pointers();
    pointer->set_offset(at);
    pointer->mutable_array()->set_arena(array->arena);
    pointer->mutable_array()->set_offset(array->offset);
  }
  PassValue(&task, 8);
  ASSERT_TRUE(harness().Run(task).ok());
  EXPECT_EQ(Values(data, 10), (Doubles{0, 0, 5, 6, 7, 8, 9, 10, 11, 12}));
  wire::Task wrong = task;
  wrong.mutable_kernel()->mutable_arguments(1)->mutable_aggregate()->mutable_raw()->resize(16);
  EXPECT_REFUSED(harness().Run(wrong));
  wrong = task;
  wrong.mutable_kernel()
      ->mutable_arguments(1)
      ->mutable_aggregate()
      ->mutable_pointers(0)
      ->set_offset(20);
  EXPECT_REFUSED(harness().Run(wrong));
}

constexpr char kGrid[] = R"(
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// In each round every block reads its neighbour's value of the previous round.
extern "C" __global__ void rounds(int* values, int* seen, int count) {
  cg::grid_group grid = cg::this_grid();
  if (!grid.is_valid()) seen[0] = -1;
  unsigned blocks = grid.num_blocks(), block = grid.block_rank();
  for (int round = 0; round < count; ++round) {
    int left = 0;
    if (threadIdx.x == blockDim.x - 1) left = values[(block + 1) % blocks];
    grid.sync();
    if (threadIdx.x == blockDim.x - 1) values[block] = left + 1;
    cg::sync(grid);
  }
  if (grid.thread_rank() + 1 == grid.size()) seen[1] = (int)grid.size();
}
)";

TEST_F(KernelTest, CooperativeGridsSynchronize) {
  constexpr int kBlocks = 24, kThreads = 64, kRounds = 50;
  const DeviceArray values =
      harness().Put(Make(DType::kInt32, {kBlocks}, [](int64_t i) { return Value(1000 * i); }));
  const DeviceArray seen = Zeros(DType::kInt32, {2});
  wire::Task task = Launch(kGrid, "rounds", {kBlocks / 2, 2}, {kThreads});
  Pass(&task, values);
  Pass(&task, seen);
  PassValue(&task, kRounds);
  task.mutable_kernel()->set_cooperative(true);
  for (int again = 0; again < 2; ++again) {
    absl::Status status = harness().Run(task);
    ASSERT_TRUE(status.ok()) << status;
  }
  const Doubles got = Values(values, kBlocks);
  for (int i = 0; i < kBlocks; ++i) {
    ASSERT_EQ(got[i], 1000 * ((i + 2 * kRounds) % kBlocks) + 2 * kRounds) << i;
  }
  EXPECT_EQ(Values(seen, 2), (Doubles{0, kBlocks * kThreads}));
}

TEST_F(KernelTest, GridBarriersNeedACooperativeLaunch) {
  const DeviceArray values = Zeros(DType::kInt32, {4}), seen = Zeros(DType::kInt32, {2});
  wire::Task task = Launch(kGrid, "rounds", {4}, {64});
  Pass(&task, values);
  Pass(&task, seen);
  PassValue(&task, 3);
  const absl::Status status = harness().Run(task);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("this_grid().sync() in a launch that is not cooperative"),
            absl::string_view::npos)
      << status;
  EXPECT_EQ(Values(seen, 1), Doubles{-1}) << "is_valid";
  // The device continues, and a launch that never reaches the barrier is no fault.
  wire::Task none = Launch(kGrid, "rounds", {4}, {64});
  Pass(&none, values);
  Pass(&none, seen);
  PassValue(&none, 0);
  EXPECT_TRUE(harness().Run(none).ok());
  task.mutable_kernel()->set_cooperative(true);
  EXPECT_TRUE(harness().Run(task).ok());
}

TEST_F(KernelTest, CooperativeGridsThatDoNotFitAreRefused) {
  const DeviceArray values = Zeros(DType::kInt32, {4}), seen = Zeros(DType::kInt32, {2});
  wire::Task task = Launch(kGrid, "rounds", {100000}, {1024});
  Pass(&task, values);
  Pass(&task, seen);
  PassValue(&task, 0);
  EXPECT_TRUE(harness().Run(task).ok()) << "not cooperative";
  task.mutable_kernel()->set_cooperative(true);
  const absl::Status status = harness().Run(task);
  EXPECT_REFUSED(status);
  const std::string text(status.message());
  const size_t at = text.find("at most ");
  ASSERT_NE(at, std::string::npos) << status;
  const uint32_t fitting = std::stoul(text.substr(at + 8));
  ASSERT_GT(fitting, 0u) << status;
  task.mutable_kernel()->set_grid(0, fitting);
  EXPECT_TRUE(harness().Run(task).ok()) << fitting;
  task.mutable_kernel()->set_grid(0, fitting + 1);
  EXPECT_REFUSED(harness().Run(task));
}

TEST_F(KernelTest, GroupsOfThreadsWork) {
  const char* source = R"(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(int* out) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int rank = block.thread_rank(), v = rank;
  for (int i = tile.size() / 2; i > 0; i /= 2) v += tile.shfl_down(v, i);
  v = tile.shfl(v, 0);
  int all = cg::reduce(tile, rank, cg::plus<int>()), most = cg::reduce(tile, rank, cg::greater<int>());
  bool ok = all == v && most == (int)tile.meta_group_rank() * 8 + 7;
  ok = ok && tile.ballot(tile.thread_rank() < 3) == 7 && tile.any(tile.thread_rank() == 7);
  ok = ok && !tile.all(tile.thread_rank() == 7);
  ok = ok && tile.shfl_xor(rank, 1) == (rank ^ 1) && tile.meta_group_size() == block.size() / 8;
  ok = ok && (int)block.group_index().x == blockIdx.x && block.dim_threads().y == 2;
  ok = ok && (int)block.thread_index().y == threadIdx.y;
  tile.sync();
  block.sync();
  out[blockIdx.x * block.size() + rank] = ok ? v : -1;
}
)";
  const DeviceArray out = Zeros(DType::kInt32, {128});
  wire::Task task = Launch(source, "groups", {2}, {32, 2});
  Pass(&task, out);
  const absl::Status status = harness().Run(task);
  ASSERT_TRUE(status.ok()) << status;
  const Doubles got = Values(out, 128);
  for (int i = 0; i < 128; ++i) ASSERT_EQ(got[i], i % 64 / 8 * 64 + 28) << i;
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
