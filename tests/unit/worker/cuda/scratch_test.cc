// Work memory of a CUDA worker, with a driver of fake functions.
#include "server/worker/cuda/driver/scratch.h"

#include <gtest/gtest.h>

#include <string>

namespace stride::cuda {
namespace {

// A device with this much memory; freed memory is available after the stream was awaited.
struct FakeMemory {
  uint64_t total = 1 << 30;
  uint64_t used = 0, given_back = 0;
  CUresult result = CUDA_SUCCESS;  // else of every allocation
};
FakeMemory g_memory;
uint64_t g_last_size = 0;

class ScratchTest : public testing::Test {
 protected:
  void SetUp() override {
    g_memory = FakeMemory();
    driver_.cuMemAllocAsync = [](CUdeviceptr* address, size_t size, CUstream) {
      if (g_memory.result != CUDA_SUCCESS) return g_memory.result;
      if (size > g_memory.total - g_memory.used) return CUDA_ERROR_OUT_OF_MEMORY;
      g_memory.used += g_last_size = size;
      *address = 256;
      return CUDA_SUCCESS;
    };
    driver_.cuMemFreeAsync = [](CUdeviceptr, CUstream) {
      g_memory.given_back += g_last_size;
      return CUDA_SUCCESS;
    };
    driver_.cuStreamSynchronize = [](CUstream) {
      g_memory.used -= std::exchange(g_memory.given_back, 0);
      return CUDA_SUCCESS;
    };
  }
  Driver driver_;
  Scratch scratch_{driver_, nullptr};
};

TEST_F(ScratchTest, OutOfMemoryIsResourceExhaustedWithBytes) {
  for (uint64_t bytes : {uint64_t{5} << 30, uint64_t{1} << 50, ~uint64_t{0}}) {
    const absl::Status status = scratch_.Reserve(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_NE(status.message().find(std::to_string(bytes)), absl::string_view::npos) << status;
    EXPECT_TRUE(scratch_.Reserve(1 << 20).ok()) << "less is there all the same";
  }
}

TEST_F(ScratchTest, AllocationWaitsForFreedMemory) {
  ASSERT_TRUE(scratch_.Reserve(700 << 20).ok());
  EXPECT_TRUE(scratch_.Reserve(800 << 20).ok());
  scratch_.Trim();
  EXPECT_TRUE(scratch_.Reserve(900 << 20).ok());
}

TEST_F(ScratchTest, OtherErrorsKeepTheirCause) {
  g_memory.result = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(scratch_.Reserve(1 << 20).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace stride::cuda
