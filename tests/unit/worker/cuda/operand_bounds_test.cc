#include "server/worker/cuda/driver/operand_bounds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "server/store/dtype.h"

namespace stride::cuda {
namespace {

wire::Operand MakeOperand(uint64_t offset, std::vector<int64_t> strides, DType dtype) {
  wire::Operand operand;
  operand.set_offset(offset);
  for (int64_t stride : strides) operand.add_strides(stride);
  operand.set_dtype(static_cast<int>(dtype));
  return operand;
}

bool Fits(const wire::Operand& operand, std::vector<int64_t> extents, uint64_t arena) {
  return CheckOperand(operand, extents, arena).ok();
}

TEST(CheckRangeTest, CannotOverflow) {
  EXPECT_TRUE(CheckRange(0, 10, 10).ok());
  EXPECT_TRUE(CheckRange(10, 0, 10).ok());
  EXPECT_FALSE(CheckRange(1, 10, 10).ok());
  EXPECT_FALSE(CheckRange(11, 0, 10).ok());
  EXPECT_FALSE(CheckRange(8, UINT64_MAX - 3, 10).ok());
}

TEST(CheckOperandTest, CountsTheLastItem) {
  EXPECT_TRUE(Fits(MakeOperand(0, {40, 4}, DType::kFloat32), {10, 10}, 400));
  EXPECT_FALSE(Fits(MakeOperand(0, {40, 4}, DType::kFloat32), {10, 10}, 399));
  EXPECT_FALSE(Fits(MakeOperand(4, {40, 4}, DType::kFloat32), {10, 10}, 400));
  EXPECT_TRUE(Fits(MakeOperand(396, {}, DType::kFloat32), {}, 400));
  EXPECT_FALSE(Fits(MakeOperand(400, {}, DType::kFloat32), {}, 400));
}

TEST(CheckOperandTest, HandlesNegativeAndZeroStrides) {
  EXPECT_TRUE(Fits(MakeOperand(36, {-4}, DType::kInt32), {10}, 40));
  EXPECT_FALSE(Fits(MakeOperand(32, {-4}, DType::kInt32), {10}, 40));
  EXPECT_TRUE(Fits(MakeOperand(36, {0}, DType::kInt32), {1000000}, 40));
}

TEST(CheckOperandTest, CannotOverflow) {
  EXPECT_FALSE(Fits(MakeOperand(8, {INT64_MAX - 7}, DType::kInt64), {INT64_MAX}, 1 << 20));
  EXPECT_FALSE(Fits(MakeOperand(8, {INT64_MIN}, DType::kInt64), {INT64_MAX}, 1 << 20));
  EXPECT_FALSE(Fits(MakeOperand(UINT64_MAX - 7, {8}, DType::kInt64), {2}, 1 << 20));
}

TEST(CheckOperandTest, RequiresAlignment) {
  EXPECT_FALSE(Fits(MakeOperand(2, {4}, DType::kFloat32), {2}, 400));
  EXPECT_FALSE(Fits(MakeOperand(0, {6}, DType::kFloat32), {2}, 400));
  EXPECT_TRUE(Fits(MakeOperand(0, {6}, DType::kFloat32), {1}, 400));
}

TEST(CheckOperandTest, RefusesInvalidOperands) {
  EXPECT_FALSE(Fits(MakeOperand(0, {4}, static_cast<DType>(99)), {2}, 400));
  EXPECT_FALSE(Fits(MakeOperand(0, {4}, DType::kFloat32), {2, 2}, 400));
  EXPECT_FALSE(Fits(MakeOperand(0, {4}, DType::kFloat32), {-1}, 400));
  EXPECT_TRUE(Fits(MakeOperand(0, {4, 4}, DType::kFloat32), {0, 1 << 30}, 400));
}

}  // namespace
}  // namespace stride::cuda
