// Library features specific to the CPU device. tests/conformance/device/kernel_library_test.cc
// covers the features of every device kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cpucuda/runtime/device_heap.h"
#include "tests/unit/cpucuda/compiler/build_kernel.h"

namespace stride::cpucuda {
namespace {

using testing::HasSubstr;

// Runs `k(double* p)` with one block.
absl::Status RunKernel(const std::string& source, unsigned threads, std::vector<double>& p,
                       std::optional<ThreadForm> form = {}) {
  Loaded loaded = Build(source, form);
  if (!loaded.status.ok()) return loaded.status;
  ThreadPool pool(1);
  double* argument = p.data();
  return Launch(pool, loaded.entry, {{1, 1, 1}, {threads, 1, 1}}, &argument, nullptr);
}

TEST(DeviceHeap, HeapIsBounded) {
  DeviceHeap heap;
  std::vector<void*> blocks;
  while (void* block = heap.Allocate(1 << 20)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), DeviceHeap::kMaxBytes / (1 << 20) - 1);
  EXPECT_EQ(heap.Allocate(DeviceHeap::kMaxBytes + 1), nullptr);
  EXPECT_EQ(heap.Allocate(~size_t{0}), nullptr);
  EXPECT_EQ(heap.Allocate(0), nullptr);
  for (void* block : blocks) EXPECT_TRUE(heap.Release(block));
  EXPECT_EQ(heap.used(), 0u);
  EXPECT_TRUE(heap.Release(nullptr));
  EXPECT_FALSE(heap.Release(blocks[0])) << "a second time";
  int other = 0;
  EXPECT_FALSE(heap.Release(&other));
}

TEST(DeviceHeap, InvalidFreeEndsTheLaunch) {
  std::vector<double> p(4);
  for (ThreadForm form : {ThreadForm::kLoops, ThreadForm::kPerThread}) {
    for (const char* source :
         {"__global__ void k(double* p) { free(p); }",
          "__global__ void k(double* p) { void* m = malloc(8); free(m); free(m); }"}) {
      const absl::Status status = RunKernel(source, 1, p, form);
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("the device heap did not give"));
    }
    const absl::Status full =
        RunKernel("__global__ void k(double* p) { p[0] = (new double[1 << 24])[5]; }", 1, p, form);
    EXPECT_THAT(std::string(full.message()), HasSubstr("the device heap is full"));
  }
}

TEST(CudaBarrier, PartialBlockIsRefused) {
  std::vector<double> p(4);
  const absl::Status status = RunKernel(R"(#include <cuda/barrier>
__global__ void k(double* p) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, 16);
  __syncthreads();
  barrier.arrive_and_wait();
})",
                                        32, p);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("all threads of the block"));
}

TEST(Curand, EachJumpIsTwiceThePrevious) {
  std::vector<double> p(130, 0);
  const absl::Status status = RunKernel(R"(#include <curand_kernel.h>
__global__ void k(double* p) {
  unsigned once[5] = {1, 20, 300, 4000, 50000 + threadIdx.x}, twice[5];
  for (int i = 0; i < 5; ++i) twice[i] = once[i];
  __stride::xorwow_jump(once, threadIdx.x + 1);
  __stride::xorwow_jump(twice, threadIdx.x);
  __stride::xorwow_jump(twice, threadIdx.x);
  bool same = true;
  for (int i = 0; i < 5; ++i) same = same && once[i] == twice[i];
  p[threadIdx.x] = same ? 1 : 0;
})",
                                        130, p);
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 130; ++i) EXPECT_EQ(p[i], 1) << "row " << i + 1;
}

TEST(Curand, SkipaheadEqualsDrawing) {
  std::vector<double> p(4, 0);
  const absl::Status status = RunKernel(R"(#include <curand_kernel.h>
template <class S>
__device__ bool Same() {
  S skipped, drawn;
  curand_init(7, 3, 1001, &skipped);
  curand_init(7, 3, 0, &drawn);
  for (int i = 0; i < 1001; ++i) curand(&drawn);
  bool same = curand(&skipped) == curand(&drawn);
  skipahead(58, &skipped);
  for (int i = 0; i < 58; ++i) curand(&drawn);
  return same && curand(&skipped) == curand(&drawn);
}
__global__ void k(double* p) {
  p[0] = Same<curandStateXORWOW_t>();
  p[1] = Same<curandStatePhilox4_32_10_t>();
  p[2] = Same<curandStateMRG32k3a_t>();
})",
                                        1, p);
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(p[i], 1) << i;
}

TEST(DefaultDevice, DefaultDeviceIsAnOption) {
  const char* source =
      "int two() { return 2; }\nnamespace a { int three = 3; }\n"
      "__global__ void k(double* p) { p[0] = two() + a::three; }";
  for (const char* option : {"-default-device", "--device-as-default-execution-space"}) {
    EXPECT_TRUE(Build(source, {}, {}, {option}).status.ok()) << option;
  }
  EXPECT_EQ(Build(source).status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stride::cpucuda
