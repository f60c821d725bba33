#include "server/worker/cuda/compile/ptx_info.h"

#include <gtest/gtest.h>

namespace stride::cuda {
namespace {

TEST(ReadPtxTest, LaysOutParameters) {
  auto kernels = ReadPtx(R"(
// .entry comment(
.version 8.0
.target sm_70
.address_size 64
.visible .entry saxpy(
  .param .f32 saxpy_param_0,
  .param .u64 .ptr .global .align 16 saxpy_param_1, /* , ) */
  .param .u8 saxpy_param_2,
  .param .align 8 .b8 saxpy_param_3[24],
  .param .u32 saxpy_param_4
)
.maxntid 128, 2, 1
.minnctapersm 2
{
  .reg .b32 %r<4>;
  ret;
}
.visible .entry nothing()
{
  ret;
}
.entry bare { ret; }
)");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 3u);
  const KernelInfo& saxpy = (*kernels)[0];
  EXPECT_EQ(saxpy.symbol, "saxpy");
  EXPECT_EQ(saxpy.max_threads, 256u);
  ASSERT_EQ(saxpy.parameters.size(), 5u);
  const uint32_t offsets[] = {0, 8, 16, 24, 48}, sizes[] = {4, 8, 1, 24, 4};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(saxpy.parameters[i].offset, offsets[i]) << i;
    EXPECT_EQ(saxpy.parameters[i].size, sizes[i]) << i;
    EXPECT_EQ(saxpy.parameters[i].pointer, i == 1) << i;
  }
  EXPECT_EQ((*kernels)[1].symbol, "nothing");
  EXPECT_TRUE((*kernels)[1].parameters.empty());
  EXPECT_EQ((*kernels)[2].symbol, "bare");
}

TEST(ReadPtxTest, FindsVariables) {
  auto variables = ReadPtxVariables(R"(
.version 8.0
.visible .const .align 4 .b8 table[16] = {1, 2};
.global .align 8 .u64 total;
.weak .global .align 16 .v4 .f32 lanes[2][3];
.visible .entry f(.param .u64 .ptr .global .align 4 p) {
  .local .align 8 .b8 inner[8];
  ld.global.u32 %r1, [%rd1];
}
.const .f64 one;
)");
  ASSERT_TRUE(variables.ok()) << variables.status();
  ASSERT_EQ(variables->size(), 4u);
  const char* symbols[] = {"table", "total", "lanes", "one"};
  const uint64_t sizes[] = {16, 8, 96, 8};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ((*variables)[i].symbol, symbols[i]);
    EXPECT_EQ((*variables)[i].size, sizes[i]);
    EXPECT_EQ((*variables)[i].constant, i == 0 || i == 3);
  }
  for (const char* text : {".global .u32", ".const .b8 x[", ".global .align x", ".global ;"})
    EXPECT_FALSE(ReadPtxVariables(text).ok()) << text;
}

TEST(ReadPtxTest, RefusesUnreadablePtx) {
  for (const char* text :
       {"", "int main() {}", ".version 8.0 .entry", ".version 8.0 .entry f(",
        ".version 8.0 .entry f(.param", ".version 8.0 .entry f(.param .u99 x) {}",
        ".version 8.0 .entry f(.param .b8 x[4000000000]) {}",
        ".version 8.0 .entry f(.param .align 0 .b8 x[4]) {}", ".version 8.0 .entry f() .maxntid"}) {
    EXPECT_EQ(ReadPtx(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace stride::cuda
