#include "server/worker/cuda/compile/missing_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stride::cuda {
namespace {

using testing::HasSubstr;

TEST(MissingHeader, NamesTheHeaderAndItsPackage) {
  struct Case {
    const char* header;
    const char* package;
  };
  for (const Case& c :
       {Case{"cub/block/block_reduce.cuh", "cuda-cccl"}, Case{"cuda/std/limits", "cuda-cccl"},
        Case{"thrust/sort.h", "cuda-cccl"}, Case{"curand_kernel.h", "libcurand-dev"},
        Case{"cooperative_groups/scan.h", "cuda-cudart-dev"},
        Case{"cuda_fp16.h", "cuda-cudart-dev"}, Case{"mma.h", "cuda-crt"}}) {
    const auto status =
        KnownRefusal(std::string("kernel.cu(1): catastrophic error: cannot open source file \"") +
                     c.header + "\"\n");
    ASSERT_TRUE(status.has_value()) << c.header;
    EXPECT_EQ(status->code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status->message()), HasSubstr(std::string("`") + c.header + "`"));
    EXPECT_THAT(std::string(status->message()), HasSubstr(c.package));
  }
}

TEST(MissingHeader, LeavesClientHeadersToTheLog) {
  EXPECT_FALSE(
      KnownRefusal("kernel.cu(1): catastrophic error: cannot open source file \"mine.h\"\n"));
  EXPECT_FALSE(KnownRefusal("kernel.cu(3): error: identifier \"x\" is undefined\n"));
}

TEST(MissingHeader, DistinguishesHostCodeFromDeviceLaunches) {
  const auto host = KnownRefusal(
      "kernel.cu(10): error: A function without execution space annotations is considered a host "
      "function, and host functions are not allowed in JIT mode.\nkernel.cu(10): error: "
      "device-side kernel launch could not be processed as the required runtime APIs are not "
      "declared\n");
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(host->message()), HasSubstr("has host code"));
  const auto nested = KnownRefusal(
      "kernel.cu(9): error: device-side kernel launch could not be processed as the required "
      "runtime APIs are not declared\n");
  ASSERT_TRUE(nested.has_value());
  EXPECT_EQ(nested->code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(nested->message()), HasSubstr("dynamic parallelism"));
}

}  // namespace
}  // namespace stride::cuda
