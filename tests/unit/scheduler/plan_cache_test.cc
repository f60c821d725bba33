#include "server/scheduler/plan_cache.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace stride::scheduler {
namespace {

const ArrayInfo kRow = Contiguous(DType::kFloat32, {1000});

v1::Operation Add(uint64_t a, uint64_t b) {
  v1::Operation operation;
  operation.mutable_ufunc()->set_function("add");
  operation.mutable_ufunc()->add_inputs()->set_handle(a);
  operation.mutable_ufunc()->add_inputs()->set_handle(b);
  operation.add_outputs()->set_handle(a + b);
  return operation;
}

std::string Key(const v1::Operation& operation, std::vector<ops::Input> inputs = {kRow, kRow},
                std::vector<ops::Input> existing = {std::nullopt}) {
  auto pointers = [](const std::vector<ops::Input>& arrays) {
    std::vector<const ArrayInfo*> out;
    for (const ops::Input& array : arrays) out.push_back(array.has_value() ? &*array : nullptr);
    return out;
  };
  return std::string(PlanKey(operation, pointers(inputs), pointers(existing)).bytes());
}

TEST(PlanCacheTest, WhatArraysAreCalledDoesNotMatter) {
  v1::Operation other = Add(3, 4);
  other.set_device("devices/cpu:0");
  other.set_priority(3);
  EXPECT_FALSE(Key(Add(1, 2)).empty());
  EXPECT_EQ(Key(Add(1, 2)), Key(other));
}

TEST(PlanCacheTest, HowTheyLieDoes) {
  const std::string plain = Key(Add(1, 2));
  ArrayInfo shifted = kRow, reversed = kRow;
  shifted.offset = 4;
  reversed.strides[0] = -4;
  EXPECT_NE(Key(Add(1, 2), {kRow, shifted}), plain);
  EXPECT_NE(Key(Add(1, 2), {reversed, kRow}), plain);
  EXPECT_NE(Key(Add(1, 2), {kRow, Contiguous(DType::kFloat64, {1000})}), plain);
  EXPECT_NE(Key(Add(1, 2), {kRow, Contiguous(DType::kFloat32, {1000, 1})}), plain);
  EXPECT_NE(Key(Add(1, 2), {kRow, kRow}, {kRow}), plain);
}

TEST(PlanCacheTest, EachFieldOfAnOperationDoes) {
  const v1::Operation add = Add(1, 2);
  std::vector<v1::Operation> others(5, add);
  others[0].mutable_ufunc()->set_function("subtract");
  others[1].mutable_ufunc()->set_data_type(v1::DATA_TYPE_FLOAT64);
  others[2].mutable_ufunc()->set_casting(v1::CASTING_SAFE);
  others[3].mutable_ufunc()->mutable_inputs(1)->mutable_scalar()->set_float_value(2);
  others[4].mutable_ufunc()->mutable_where()->set_handle(9);
  for (const v1::Operation& other : others) EXPECT_NE(Key(other), Key(add)) << other.DebugString();
  v1::Operation three = others[3];
  three.mutable_ufunc()->mutable_inputs(1)->mutable_scalar()->set_float_value(3);
  EXPECT_NE(Key(three), Key(others[3]));

  v1::Operation sum;
  sum.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
  std::vector<v1::Operation> sums(10, sum);
  sums[0].mutable_reduction()->set_function(v1::Reduction::FUNCTION_MEAN);
  sums[1].mutable_reduction()->set_function_name("add");
  sums[2].mutable_reduction()->set_data_type(v1::DATA_TYPE_FLOAT64);
  sums[3].mutable_reduction()->set_keep_dims(true);
  sums[4].mutable_reduction()->add_axes(0);
  sums[5].mutable_reduction()->mutable_initial()->set_int_value(1);
  sums[6].mutable_reduction()->mutable_where()->set_handle(9);
  sums[7].mutable_reduction()->set_skip_nan(true);
  sums[8].mutable_reduction()->mutable_expression()->set_text("x + 1");
  (*sums[8].mutable_reduction()->mutable_expression()->mutable_inputs())["x"].set_handle(1);
  sums[9] = sums[8];
  sums[9].mutable_reduction()->mutable_expression()->set_text("x - 1");
  for (const v1::Operation& other : sums) EXPECT_NE(Key(other), Key(sum)) << other.DebugString();
  EXPECT_NE(Key(sums[9]), Key(sums[8]));

  v1::Operation expression;
  expression.mutable_expression()->set_text("x + y");
  (*expression.mutable_expression()->mutable_inputs())["x"].set_handle(1);
  v1::Operation renamed = expression, retyped = expression;
  renamed.mutable_expression()->set_text("x - y");
  retyped.mutable_expression()->set_data_type(v1::DATA_TYPE_FLOAT64);
  EXPECT_NE(Key(renamed), Key(expression));
  EXPECT_NE(Key(retyped), Key(expression));

  v1::Operation product;
  product.mutable_matmul()->mutable_left()->set_handle(1);
  product.mutable_matmul()->mutable_right()->set_handle(2);
  v1::Operation wide = product;
  wide.mutable_matmul()->set_data_type(v1::DATA_TYPE_INT32);
  EXPECT_NE(Key(wide), Key(product));

  v1::Operation copy;
  copy.mutable_copy()->mutable_input()->set_handle(1);
  v1::Operation cast = copy, move = copy;
  cast.mutable_copy()->set_data_type(v1::DATA_TYPE_FLOAT64);
  move.mutable_copy()->set_move(true);
  EXPECT_NE(Key(cast), Key(copy));
  EXPECT_TRUE(Key(move).empty());
}

// A new field of one of these messages is to be part of the key: then this count and the test
// above.
TEST(PlanCacheTest, NoFieldIsForgotten) {
  EXPECT_EQ(v1::Ufunc::descriptor()->field_count(), 5);
  EXPECT_EQ(v1::Expression::descriptor()->field_count(), 3);
  EXPECT_EQ(v1::Reduction::descriptor()->field_count(), 11);
  EXPECT_EQ(v1::Matmul::descriptor()->field_count(), 3);
  EXPECT_EQ(v1::Copy::descriptor()->field_count(), 3);
}

TEST(PlanCacheTest, KernelsAndProgramsAreNotKept) {
  v1::Operation operation;
  operation.mutable_kernel_launch()->set_entry("k");
  EXPECT_TRUE(Key(operation, {}).empty());
  operation.mutable_program_call()->set_program("tenants/t/programs/p");
  EXPECT_TRUE(Key(operation, {}).empty());
}

TEST(PlanCacheTest, KeepsNoMoreThanItMay) {
  PlanCache cache;
  std::shared_ptr<const Planned> planned = MakePlanned({});
  for (int i = 0; i < 10000; ++i) cache.Keep(std::to_string(i), planned);
  EXPECT_EQ(cache.Find("9999"), planned);
  EXPECT_EQ(cache.Find("0"), nullptr);
  EXPECT_LT(planned.use_count(), 5000);
}

}  // namespace
}  // namespace stride::scheduler
