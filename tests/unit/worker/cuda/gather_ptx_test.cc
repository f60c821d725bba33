#include <gtest/gtest.h>

#include "server/worker/cuda/compile/ptx_info.h"
#include "server/worker/cuda/lower/gather.h"

namespace stride::cuda {
namespace {

TEST(GatherPtxTest, DeclaresOneKernelPerItemSize) {
  auto kernels = ReadPtx(Gather::Ptx());
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 4u);
  for (const KernelInfo& kernel : *kernels) {
    ASSERT_EQ(kernel.parameters.size(), 9u) << kernel.symbol;
    EXPECT_EQ(kernel.parameters[8].offset, 64u) << kernel.symbol;
  }
}

}  // namespace
}  // namespace stride::cuda
