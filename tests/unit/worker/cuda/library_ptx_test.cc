#include <gtest/gtest.h>

#include "server/worker/cuda/compile/ptx_info.h"
#include "server/worker/cuda/lower/fft.h"
#include "server/worker/cuda/lower/linalg.h"
#include "server/worker/cuda/lower/linalg_batch.h"

namespace stride::cuda {
namespace {

TEST(LibraryPtxTest, FftDeclaresCopyAndScaleKernels) {
  auto kernels = ReadPtx(Fft::Ptx());
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 5u);
  EXPECT_EQ((*kernels)[0].symbol, "stride_copy_box_4");
  EXPECT_EQ((*kernels)[2].symbol, "stride_copy_box_16");
  ASSERT_EQ((*kernels)[0].parameters.size(), 1u);
  EXPECT_EQ((*kernels)[0].parameters[0].size, 800u);
  EXPECT_EQ((*kernels)[4].symbol, "stride_scale_8");
  EXPECT_EQ((*kernels)[4].parameters.size(), 3u);
}

TEST(LibraryPtxTest, LinalgDeclaresErrorAndEigenvectorKernels) {
  auto kernels = ReadPtx(Linalg::Ptx());
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 5u);
  EXPECT_EQ((*kernels)[0].symbol, "stride_note_info");
  EXPECT_EQ((*kernels)[0].parameters.size(), 4u);
  EXPECT_EQ((*kernels)[1].symbol, "stride_check_finite_4");
  EXPECT_EQ((*kernels)[1].parameters.size(), 3u);
  EXPECT_EQ((*kernels)[4].symbol, "stride_join_vectors_8");
  EXPECT_EQ((*kernels)[4].parameters.size(), 4u);
}

TEST(LibraryPtxTest, BatchesDeclarePointerAndPivotKernels) {
  auto kernels = ReadPtx(LinalgBatch::Ptx());
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_EQ((*kernels)[0].symbol, "stride_matrix_pointers");
  EXPECT_EQ((*kernels)[0].parameters.size(), 4u);
  EXPECT_EQ((*kernels)[1].symbol, "stride_widen_pivots");
  EXPECT_EQ((*kernels)[1].parameters.size(), 3u);
}

}  // namespace
}  // namespace stride::cuda
