#include "server/worker/cuda/driver/cuda_status.h"

#include <gtest/gtest.h>

#include <string>

namespace stride::cuda {
namespace {

TEST(CudaStatusTest, MapsCodesToStatus) {
  EXPECT_TRUE(ToStatus(CUDA_SUCCESS, "x").ok());
  EXPECT_EQ(ToStatus(CUDA_ERROR_OUT_OF_MEMORY, "x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(CUDA_ERROR_INVALID_PTX, "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToStatus(CUDA_ERROR_INVALID_VALUE, "x").code(), absl::StatusCode::kInternal);
}

TEST(CudaStatusTest, DetectsErrorsThatEndTheProcess) {
  for (int code : {700, 702, 710, 714, 715, 716, 717, 718, 719, 214, 220, 999}) {
    EXPECT_TRUE(IsSticky(static_cast<CUresult>(code))) << code;
  }
  for (int code : {0, 1, 2, 200, 209, 218, 400, 500, 600, 701, 712, 801}) {
    EXPECT_FALSE(IsSticky(static_cast<CUresult>(code))) << code;
  }
}

TEST(CudaStatusTest, NamesCauseAndTask) {
  const absl::Status status = FaultStatus(CUDA_ERROR_ILLEGAL_ADDRESS, "saxpy");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()), "illegal memory access in `saxpy` (CUDA error 700)");
  EXPECT_EQ(FaultStatus(CUDA_ERROR_ECC_UNCORRECTABLE, "saxpy").code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace stride::cuda
