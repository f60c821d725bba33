// Plans of operations that run as routines: shapes, types, fields of errors.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::Array;
using testing::ExpectRefused;
using testing::Good;
using Extents = std::vector<int64_t>;

v1::Operation AccumulationOf(const std::string& function) {
  v1::Operation operation;
  operation.mutable_accumulation()->set_function(function);
  operation.mutable_accumulation()->mutable_input()->set_handle(1);
  operation.add_outputs()->set_handle(2);
  return operation;
}

TEST(PlanAccumulation, TypesFollowNumPy) {
  v1::Operation add = AccumulationOf("add");
  EXPECT_EQ(Good(add, {Array(DType::kInt8, {4})}).outputs[0].dtype, DType::kInt64);
  EXPECT_EQ(Good(add, {Array(DType::kUInt16, {4})}).outputs[0].dtype, DType::kUInt64);
  EXPECT_EQ(Good(add, {Array(DType::kFloat16, {4})}).outputs[0].dtype, DType::kFloat16);
  add.mutable_accumulation()->set_data_type(v1::DATA_TYPE_INT16);
  EXPECT_EQ(Good(add, {Array(DType::kInt8, {4})}).outputs[0].dtype, DType::kInt16);
  ExpectRefused(add, {Array(DType::kFloat32, {4})}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "accumulation.input");
  EXPECT_EQ(Good(AccumulationOf("maximum"), {Array(DType::kInt8, {4})}).outputs[0].dtype,
            DType::kInt8);
  EXPECT_EQ(Good(AccumulationOf("logical_and"), {Array(DType::kFloat64, {4})}).outputs[0].dtype,
            DType::kBool);
  EXPECT_EQ(Good(AccumulationOf("divide"), {Array(DType::kInt8, {4})}).outputs[0].dtype,
            DType::kFloat64);
}

TEST(PlanAccumulation, SplitsARowOnlyIfAssociative) {
  EXPECT_EQ(Good(AccumulationOf("add"), {Array(DType::kInt8, {4})}).code->routine().options(1), 1);
  EXPECT_EQ(Good(AccumulationOf("subtract"), {Array(DType::kInt8, {4})}).code->routine().options(1),
            0);
}

TEST(PlanAccumulation, RefusesWithTheField) {
  const std::vector<Input> matrix = {Array(DType::kFloat32, {3, 4})};
  ExpectRefused(AccumulationOf("add"), matrix, v1::ERROR_REASON_INVALID_FIELD, "accumulation.axis");
  v1::Operation add = AccumulationOf("add");
  add.mutable_accumulation()->set_axis(2);
  ExpectRefused(add, matrix, v1::ERROR_REASON_INVALID_FIELD, "accumulation.axis");
  add.mutable_accumulation()->set_axis(-2);
  add.mutable_accumulation()->set_include_initial(true);
  EXPECT_EQ(Good(add, matrix).outputs[0].shape, (Extents{4, 4}));
  ExpectRefused(AccumulationOf("cos"), matrix, v1::ERROR_REASON_INVALID_FIELD,
                "accumulation.function");
  ExpectRefused(AccumulationOf("divmod"), matrix, v1::ERROR_REASON_INVALID_FIELD,
                "accumulation.function");
  ExpectRefused(AccumulationOf("plus"), matrix, v1::ERROR_REASON_UNKNOWN_FUNCTION,
                "accumulation.function");
  ExpectRefused(AccumulationOf("less"), {Array(DType::kFloat32, {3})},
                v1::ERROR_REASON_DATA_TYPE_MISMATCH, "accumulation.function");
  v1::Operation maximum = AccumulationOf("maximum");
  maximum.mutable_accumulation()->set_include_initial(true);
  ExpectRefused(maximum, {Array(DType::kFloat32, {3})}, v1::ERROR_REASON_INVALID_FIELD,
                "accumulation.include_initial");
  ExpectRefused(AccumulationOf("add"), {Array(DType::kFloat32, {})}, v1::ERROR_REASON_INVALID_FIELD,
                "accumulation.axis");
  ExpectRefused(AccumulationOf("add"), {Array(DType::kFloat32, {3})},
                v1::ERROR_REASON_SHAPE_MISMATCH, "outputs[0]", Array(DType::kFloat32, {4}));
}

TEST(PlanAccumulation, IdentityIsUsedAtMostOnce) {
  v1::Operation add = AccumulationOf("add");
  add.mutable_accumulation()->set_exclusive(true);
  EXPECT_EQ(Good(add, {Array(DType::kInt8, {4})}).outputs[0].shape, (Extents{4}));
  add.mutable_accumulation()->set_include_initial(true);
  ExpectRefused(add, {Array(DType::kInt8, {4})}, v1::ERROR_REASON_INVALID_FIELD,
                "accumulation.exclusive");
  v1::Operation maximum = AccumulationOf("maximum");
  maximum.mutable_accumulation()->set_exclusive(true);
  ExpectRefused(maximum, {Array(DType::kInt8, {4})}, v1::ERROR_REASON_INVALID_FIELD,
                "accumulation.exclusive");
}

TEST(PlanTopK, ReturnsValuesAndIndices) {
  v1::Operation top;
  top.mutable_top_k()->set_k(3);
  top.add_outputs();
  top.add_outputs();
  const Plan plan = Good(top, {Array(DType::kFloat16, {5, 4})});
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[0].dtype, DType::kFloat16);
  EXPECT_EQ(plan.outputs[1].dtype, DType::kInt64);
  EXPECT_EQ(plan.outputs[1].shape, (Extents{5, 3}));
  for (int64_t k : {0, 5}) {
    top.mutable_top_k()->set_k(k);
    ExpectRefused(top, {Array(DType::kFloat16, {5, 4})}, v1::ERROR_REASON_INVALID_FIELD, "top_k.k");
  }
  top.mutable_top_k()->set_k(3);
  top.mutable_top_k()->set_axis(2);
  ExpectRefused(top, {Array(DType::kFloat16, {5, 4})}, v1::ERROR_REASON_INVALID_FIELD,
                "top_k.axis");
  ExpectRefused(top, {std::nullopt}, v1::ERROR_REASON_INVALID_FIELD, "top_k.input");
}

TEST(PlanHistogram, RefusesWithTheField) {
  v1::Operation count;
  count.mutable_histogram()->mutable_input();
  count.add_outputs();
  const Input array = Array(DType::kInt8, {9});
  ExpectRefused(count, {array}, v1::ERROR_REASON_INVALID_FIELD, "histogram.uniform");
  auto* uniform = count.mutable_histogram()->mutable_uniform();
  uniform->set_high(1);
  ExpectRefused(count, {array}, v1::ERROR_REASON_INVALID_FIELD, "histogram.uniform.count");
  uniform->set_count(4);
  EXPECT_EQ(Good(count, {array}).outputs[0], Contiguous(DType::kInt64, {4}));
  ExpectRefused(count, {Array(DType::kComplex64, {2})}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "histogram.input");
  uniform->set_low(1);
  ExpectRefused(count, {array}, v1::ERROR_REASON_INVALID_FIELD, "histogram.uniform.high");
  uniform->set_low(-1.7e308);
  uniform->set_high(1.7e308);
  ExpectRefused(count, {array}, v1::ERROR_REASON_INVALID_FIELD, "histogram.uniform.high");
  count.mutable_histogram()->mutable_edges();
  ExpectRefused(count, {array, Array(DType::kFloat32, {1})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "histogram.edges");
  count.mutable_histogram()->mutable_weights();
  const Input edges = Array(DType::kFloat32, {3});
  ExpectRefused(count, {array, edges, Array(DType::kInt8, {3})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "histogram.weights");
  EXPECT_EQ(Good(count, {array, edges, Array(DType::kInt8, {9})}).outputs[0],
            Contiguous(DType::kFloat64, {2}));
  EXPECT_EQ(Good(count, {array, edges, Array(DType::kFloat16, {9})}).outputs[0],
            Contiguous(DType::kFloat16, {2}));
}

TEST(PlanGroupReduce, RefusesWithTheField) {
  v1::Operation sum;
  auto* group = sum.mutable_group_reduce();
  group->set_function("add");
  group->set_num_groups(7);
  group->set_axis(-1);
  sum.add_outputs();
  const Input values = Array(DType::kInt8, {3, 5}), groups = Array(DType::kUInt16, {5});
  EXPECT_EQ(Good(sum, {values, groups}).outputs[0], Contiguous(DType::kInt64, {3, 7}));
  group->set_data_type(v1::DATA_TYPE_INT16);
  EXPECT_EQ(Good(sum, {values, groups}).outputs[0], Contiguous(DType::kInt16, {3, 7}));
  ExpectRefused(sum, {values, Array(DType::kInt8, {4})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "group_reduce.groups");
  ExpectRefused(sum, {values, Array(DType::kFloat32, {5})}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "group_reduce.groups");
  group->set_axis(2);
  ExpectRefused(sum, {values, groups}, v1::ERROR_REASON_INVALID_FIELD, "group_reduce.axis");
  group->set_axis(1);
  group->set_num_groups(0);
  ExpectRefused(sum, {values, groups}, v1::ERROR_REASON_INVALID_FIELD, "group_reduce.num_groups");
  group->set_num_groups(1);
  group->set_function("copysign");
  group->clear_data_type();
  ExpectRefused(sum, {Array(DType::kFloat32, {3, 5}), groups}, v1::ERROR_REASON_INVALID_FIELD,
                "group_reduce.function");
}

TEST(PlanReduction, RefusesInitialAndWhereWithTheField) {
  v1::Operation reduce;
  auto* reduction = reduce.mutable_reduction();
  reduction->mutable_where();
  reduction->set_function(v1::Reduction::FUNCTION_SUM);
  reduce.add_outputs();
  const Input array = Array(DType::kInt8, {3, 4}), mask = Array(DType::kBool, {4});
  EXPECT_EQ(Good(reduce, {array, mask}).code->reduce().map().results_size(), 2);
  ExpectRefused(reduce, {array, Array(DType::kInt8, {4})}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "reduction.where");
  ExpectRefused(reduce, {array, Array(DType::kBool, {3})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "reduction.where");
  ExpectRefused(reduce, {array, std::nullopt}, v1::ERROR_REASON_INVALID_FIELD, "reduction.where");
  reduction->set_function(v1::Reduction::FUNCTION_MIN);
  ExpectRefused(reduce, {array, mask}, v1::ERROR_REASON_INVALID_FIELD, "reduction.where");
  reduction->mutable_initial()->set_int_value(5);
  Good(reduce, {array, mask});
  reduction->mutable_initial()->set_int_value(500);
  ExpectRefused(reduce, {array, mask}, v1::ERROR_REASON_INVALID_FIELD, "reduction.initial");
  reduction->mutable_initial()->set_int_value(5);
  reduction->set_function(v1::Reduction::FUNCTION_MEAN);
  ExpectRefused(reduce, {array, mask}, v1::ERROR_REASON_INVALID_FIELD, "reduction.initial");
  reduction->clear_initial();
  reduction->set_function(v1::Reduction::FUNCTION_ARGMAX);
  ExpectRefused(reduce, {array, mask}, v1::ERROR_REASON_INVALID_FIELD, "reduction.where");
}

v1::Operation GatherOf(int num_indices, int axis, bool along = false) {
  v1::Operation operation;
  operation.mutable_gather()->mutable_input()->set_handle(1);
  for (int i = 0; i < num_indices; ++i) operation.mutable_gather()->add_indices()->set_handle(2);
  operation.mutable_gather()->set_axis(axis);
  operation.mutable_gather()->set_along_axis(along);
  operation.add_outputs()->set_handle(3);
  return operation;
}

TEST(PlanGather, ShapesFollowTheIndices) {
  const Input input = Array(DType::kFloat32, {3, 4, 5}), index = Array(DType::kInt32, {7, 1}),
              other = Array(DType::kUInt8, {6});
  EXPECT_EQ(Good(GatherOf(1, 1), {input, index}).outputs[0].shape, (Extents{3, 7, 1, 5}));
  EXPECT_EQ(Good(GatherOf(1, -1), {input, other}).outputs[0].shape, (Extents{3, 4, 6}));
  EXPECT_EQ(Good(GatherOf(2, 0), {input, index, other}).outputs[0].shape, (Extents{7, 6, 5}));
  EXPECT_EQ(Good(GatherOf(1, 2, true), {input, Array(DType::kInt64, {3, 1, 2})}).outputs[0].shape,
            (Extents{3, 4, 2}));
}

TEST(PlanGather, RefusesWithTheField) {
  const Input input = Array(DType::kFloat32, {3, 4}), index = Array(DType::kInt32, {7});
  ExpectRefused(GatherOf(0, 0), {input}, v1::ERROR_REASON_ARGUMENT_COUNT, "gather.indices");
  ExpectRefused(GatherOf(2, 1), {input, index, index}, v1::ERROR_REASON_ARGUMENT_COUNT,
                "gather.indices");
  ExpectRefused(GatherOf(1, 2), {input, index}, v1::ERROR_REASON_INVALID_FIELD, "gather.axis");
  ExpectRefused(GatherOf(1, 0), {input, Array(DType::kBool, {3})},
                v1::ERROR_REASON_DATA_TYPE_MISMATCH, "gather.indices[0]");
  ExpectRefused(GatherOf(2, 0), {input, index, Array(DType::kFloat32, {7})},
                v1::ERROR_REASON_DATA_TYPE_MISMATCH, "gather.indices[1]");
  ExpectRefused(GatherOf(2, 0), {input, index, Array(DType::kInt32, {6})},
                v1::ERROR_REASON_SHAPE_MISMATCH, "gather.indices");
  ExpectRefused(GatherOf(1, 0, true), {input, index}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "gather.indices[0]");
  v1::Operation mode = GatherOf(1, 0);
  mode.mutable_gather()->set_mode(static_cast<v1::IndexMode>(9));
  ExpectRefused(mode, {input, index}, v1::ERROR_REASON_INVALID_FIELD, "gather.mode");
  // Each within the limits, but not their product.
  ExpectRefused(
      GatherOf(2, 0),
      {input, Array(DType::kInt8, {int64_t{1} << 31, 1}), Array(DType::kInt8, {int64_t{1} << 31})},
      v1::ERROR_REASON_SIZE_LIMIT, "outputs[0]");
}

v1::Operation ScatterOf(int axis, bool along = false) {
  v1::Operation operation;
  operation.mutable_scatter()->mutable_values()->set_handle(1);
  operation.mutable_scatter()->add_indices()->set_handle(2);
  operation.mutable_scatter()->set_axis(axis);
  operation.mutable_scatter()->set_along_axis(along);
  operation.add_outputs()->set_handle(3);
  operation.mutable_outputs(0)->set_existing(true);
  return operation;
}

TEST(PlanScatter, WritesAnExistingArray) {
  const Input target = Array(DType::kFloat32, {3, 4}), index = Array(DType::kInt32, {7});
  const Plan plan = Good(ScatterOf(1), {Array(DType::kInt64, {7}), index}, target);
  EXPECT_EQ(plan.outputs[0], *target);
  EXPECT_EQ(plan.task.routine().operands(2).operand().arena(), 2u);
  ExpectRefused(ScatterOf(1), {Array(DType::kInt64, {7}), index}, v1::ERROR_REASON_INVALID_FIELD,
                "outputs[0].existing");
  ExpectRefused(ScatterOf(1), {Array(DType::kInt64, {6}), index}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "scatter.values", target);
  // The values must not extend the loop.
  ExpectRefused(ScatterOf(1), {Array(DType::kInt64, {2, 3, 7}), index},
                v1::ERROR_REASON_SHAPE_MISMATCH, "scatter.values", target);
  v1::Operation safe = ScatterOf(1);
  safe.mutable_scatter()->set_casting(v1::CASTING_SAME_KIND);
  ExpectRefused(safe, {Array(DType::kComplex64, {7}), index}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "outputs[0]", target);
  ArrayInfo repeated = *target;
  repeated.strides[0] = 0;
  ExpectRefused(ScatterOf(1), {Array(DType::kInt64, {7}), index}, v1::ERROR_REASON_INVALID_FIELD,
                "outputs[0]", repeated);
  ExpectRefused(ScatterOf(0, true), {Array(DType::kInt64, {1, 1}), Array(DType::kInt32, {5, 9})},
                v1::ERROR_REASON_SHAPE_MISMATCH, "scatter.indices[0]", target);
  // A view of one index, seen 2^40 times.
  ArrayInfo endless{DType::kInt8, {int64_t{1} << 40}, {0}, 0};
  ExpectRefused(ScatterOf(0), {Array(DType::kInt64, {1}), endless}, v1::ERROR_REASON_SIZE_LIMIT,
                "scatter.indices", target);
}

TEST(PlanMask, CountsAreBounded) {
  v1::Operation compress;
  compress.mutable_compress()->mutable_input()->set_handle(1);
  compress.mutable_compress()->mutable_mask()->set_handle(2);
  compress.mutable_compress()->set_axis(1);
  compress.mutable_compress()->set_count(9);
  compress.add_outputs()->set_handle(3);
  const Input input = Array(DType::kInt16, {2, 3, 4, 5}), mask = Array(DType::kBool, {3, 4});
  EXPECT_EQ(Good(compress, {input, mask}).outputs[0], Contiguous(DType::kInt16, {2, 9, 5}));
  ExpectRefused(compress, {input, Array(DType::kBool, {4, 3})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "compress.mask");
  ExpectRefused(compress, {input, Array(DType::kInt8, {3, 4})}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "compress.mask");
  for (int64_t count : {13, -1}) {
    compress.mutable_compress()->set_count(count);
    ExpectRefused(compress, {input, mask}, v1::ERROR_REASON_INVALID_FIELD, "compress.count");
  }
  v1::Operation nonzero;
  nonzero.mutable_nonzero()->mutable_input()->set_handle(1);
  nonzero.mutable_nonzero()->set_count(3);
  nonzero.add_outputs()->set_handle(3);
  ExpectRefused(nonzero, {Array(DType::kInt16, {2, 3})}, v1::ERROR_REASON_ARGUMENT_COUNT,
                "outputs");
  nonzero.add_outputs()->set_handle(4);
  const Plan plan = Good(nonzero, {Array(DType::kInt16, {2, 3})});
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[1], Contiguous(DType::kInt64, {3}));
}

TEST(PlanSort, TypesAndAxes) {
  v1::Operation sort;
  sort.mutable_sort()->mutable_input()->set_handle(1);
  sort.add_outputs()->set_handle(3);
  EXPECT_EQ(Good(sort, {Array(DType::kFloat16, {2, 3})}).outputs[0],
            Contiguous(DType::kFloat16, {2, 3}));
  sort.mutable_sort()->set_indices(true);
  EXPECT_EQ(Good(sort, {Array(DType::kFloat16, {2, 3})}).outputs[0].dtype, DType::kInt64);
  ExpectRefused(sort, {Array(DType::kFloat16, {})}, v1::ERROR_REASON_INVALID_FIELD, "sort.axis");
  v1::Operation search;
  search.mutable_search()->mutable_sorted()->set_handle(1);
  search.mutable_search()->mutable_values()->set_handle(2);
  search.add_outputs()->set_handle(3);
  EXPECT_EQ(Good(search, {Array(DType::kInt8, {9}), Array(DType::kFloat32, {2, 3})}).outputs[0],
            Contiguous(DType::kInt64, {2, 3}));
  ExpectRefused(search, {Array(DType::kInt8, {9, 1}), Array(DType::kFloat32, {2, 3})},
                v1::ERROR_REASON_SHAPE_MISMATCH, "search.sorted");
}

TEST(PlanSort, MoreKeysNeedIndicesAndEqualShapes) {
  v1::Operation sort;
  sort.mutable_sort()->mutable_input()->set_handle(1);
  sort.mutable_sort()->add_more_keys()->set_handle(2);
  sort.add_outputs()->set_handle(3);
  const std::vector<Input> keys = {Array(DType::kFloat16, {2, 3}), Array(DType::kInt8, {2, 3})};
  ExpectRefused(sort, keys, v1::ERROR_REASON_INVALID_FIELD, "sort.more_keys");
  sort.mutable_sort()->set_indices(true);
  EXPECT_EQ(Good(sort, keys).outputs[0], Contiguous(DType::kInt64, {2, 3}));
  ExpectRefused(sort, {keys[0], Array(DType::kInt8, {3})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "sort.more_keys[0]");
  ExpectRefused(sort, {keys[0], std::nullopt}, v1::ERROR_REASON_INVALID_FIELD, "sort.more_keys[0]");
  std::vector<Input> many(34, Array(DType::kInt8, {4}));
  for (int i = 0; i < 32; ++i) sort.mutable_sort()->add_more_keys()->set_handle(9);
  ExpectRefused(sort, many, v1::ERROR_REASON_SIZE_LIMIT, "sort.more_keys");
}

TEST(PlanSelect, ShapesAndFields) {
  v1::Operation select;
  select.mutable_select()->mutable_input()->set_handle(1);
  select.mutable_select()->mutable_ranks()->set_handle(2);
  select.add_outputs()->set_handle(3);
  const Input matrix = Array(DType::kFloat16, {5, 40});
  EXPECT_EQ(Good(select, {matrix, Array(DType::kInt64, {3})}).outputs[0],
            Contiguous(DType::kFloat16, {5, 3}));
  EXPECT_EQ(Good(select, {matrix, Array(DType::kUInt8, {5, 2})}).outputs[0],
            Contiguous(DType::kFloat16, {5, 2}));
  EXPECT_EQ(Good(select, {matrix, Array(DType::kUInt8, {1, 2})}).outputs[0],
            Contiguous(DType::kFloat16, {5, 2}));
  ExpectRefused(select, {matrix, Array(DType::kUInt8, {4, 2})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "select.ranks");
  ExpectRefused(select, {matrix, Array(DType::kUInt8, {})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "select.ranks");
  ExpectRefused(select, {matrix, Array(DType::kFloat32, {3})}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "select.ranks");
  ExpectRefused(select, {matrix, std::nullopt}, v1::ERROR_REASON_INVALID_FIELD, "select.ranks");
  ExpectRefused(select, {std::nullopt, Array(DType::kInt8, {3})}, v1::ERROR_REASON_INVALID_FIELD,
                "select.input");
  select.mutable_select()->set_axis(2);
  ExpectRefused(select, {matrix, Array(DType::kInt64, {3})}, v1::ERROR_REASON_INVALID_FIELD,
                "select.axis");
  select.mutable_select()->set_axis(0);
  EXPECT_EQ(Good(select, {matrix, Array(DType::kInt64, {3})}).outputs[0].shape, (Extents{3, 40}));
}

TEST(PlanPartition, PositionsLieOnTheAxis) {
  v1::Operation partition;
  partition.mutable_partition()->mutable_input()->set_handle(1);
  partition.add_outputs()->set_handle(3);
  const std::vector<Input> row = {Array(DType::kInt16, {2, 5000})};
  ExpectRefused(partition, row, v1::ERROR_REASON_INVALID_FIELD, "partition.kth");
  for (int64_t place : {5000, -5001}) {
    partition.mutable_partition()->clear_kth();
    partition.mutable_partition()->add_kth(0);
    partition.mutable_partition()->add_kth(place);
    ExpectRefused(partition, row, v1::ERROR_REASON_INVALID_FIELD, "partition.kth[1]");
  }
  partition.mutable_partition()->set_kth(1, -5000);
  Plan plan = Good(partition, row);
  EXPECT_EQ(plan.outputs[0], Contiguous(DType::kInt16, {2, 5000}));
  EXPECT_EQ(plan.task.routine().scalars_size(), 1) << "both are place 0";
  partition.mutable_partition()->set_indices(true);
  EXPECT_EQ(Good(partition, row).outputs[0].dtype, DType::kInt64);
  for (int i = 1; i < 9; ++i) partition.mutable_partition()->add_kth(i);
  EXPECT_EQ(Good(partition, row).code->routine().routine(), wire::RoutineCode::ROUTINE_SORT);
  partition.mutable_partition()->set_axis(-3);
  ExpectRefused(partition, row, v1::ERROR_REASON_INVALID_FIELD, "partition.axis");
}

TEST(PlanInterpolate, RefusesWithTheField) {
  v1::Operation interpolate;
  auto* message = interpolate.mutable_interpolate();
  for (v1::Operand* operand :
       {message->mutable_input(), message->mutable_known(), message->mutable_values()})
    operand->set_handle(1);
  interpolate.add_outputs()->set_handle(3);
  const Input places = Array(DType::kInt8, {4, 2}), row = Array(DType::kFloat32, {7});
  EXPECT_EQ(Good(interpolate, {places, row, row}).outputs[0], Contiguous(DType::kFloat64, {4, 2}));
  EXPECT_EQ(Good(interpolate, {places, row, Array(DType::kComplex64, {7})}).outputs[0].dtype,
            DType::kComplex128);
  ExpectRefused(interpolate, {Array(DType::kComplex64, {4}), row, row},
                v1::ERROR_REASON_DATA_TYPE_MISMATCH, "interpolate.input");
  ExpectRefused(interpolate, {places, Array(DType::kComplex64, {7}), row},
                v1::ERROR_REASON_DATA_TYPE_MISMATCH, "interpolate.known");
  ExpectRefused(interpolate, {places, Array(DType::kFloat32, {0}), row},
                v1::ERROR_REASON_SHAPE_MISMATCH, "interpolate.known");
  ExpectRefused(interpolate, {places, Array(DType::kFloat32, {7, 1}), row},
                v1::ERROR_REASON_SHAPE_MISMATCH, "interpolate.known");
  ExpectRefused(interpolate, {places, row, Array(DType::kFloat32, {6})},
                v1::ERROR_REASON_SHAPE_MISMATCH, "interpolate.values");
  message->mutable_right()->mutable_complex_value()->set_imaginary(1);
  ExpectRefused(interpolate, {places, row, row}, v1::ERROR_REASON_INVALID_FIELD,
                "interpolate.right");
}

TEST(PlanCorrelate, LengthsAndFields) {
  v1::Operation correlate;
  correlate.mutable_correlate()->mutable_left()->set_handle(1);
  correlate.mutable_correlate()->mutable_right()->set_handle(2);
  correlate.add_outputs()->set_handle(3);
  const Input five = Array(DType::kInt8, {5}), three = Array(DType::kFloat32, {3});
  auto length = [&](v1::Correlate::Mode mode, const std::vector<Input>& inputs) {
    correlate.mutable_correlate()->set_mode(mode);
    return Good(correlate, inputs).outputs[0].shape[0];
  };
  for (const auto& inputs : {std::vector<Input>{five, three}, std::vector<Input>{three, five}}) {
    EXPECT_EQ(length(v1::Correlate::MODE_UNSPECIFIED, inputs), 3);
    EXPECT_EQ(length(v1::Correlate::MODE_VALID, inputs), 3);
    EXPECT_EQ(length(v1::Correlate::MODE_SAME, inputs), 5);
    EXPECT_EQ(length(v1::Correlate::MODE_FULL, inputs), 7);
  }
  EXPECT_EQ(Good(correlate, {five, three}).outputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(Good(correlate, {five, three}).flops, 2.0 * 7 * 3);
  ExpectRefused(correlate, {five, Array(DType::kInt8, {0})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "correlate.right");
  ExpectRefused(correlate, {Array(DType::kInt8, {5, 1}), five}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "correlate.left");
  correlate.mutable_correlate()->set_mode(static_cast<v1::Correlate::Mode>(9));
  ExpectRefused(correlate, {five, three}, v1::ERROR_REASON_INVALID_FIELD, "correlate.mode");
}

TEST(PlanReduction, SkipsNanForSupportedFunctions) {
  v1::Operation reduce;
  auto* reduction = reduce.mutable_reduction();
  reduction->mutable_input()->set_handle(1);
  reduction->set_skip_nan(true);
  reduce.add_outputs()->set_handle(2);
  const std::vector<Input> row = {Array(DType::kFloat32, {9})};
  for (v1::Reduction::Function function : {v1::Reduction::FUNCTION_ANY, v1::Reduction::FUNCTION_ALL,
                                           v1::Reduction::FUNCTION_COUNT_NONZERO}) {
    reduction->set_function(function);
    ExpectRefused(reduce, row, v1::ERROR_REASON_INVALID_FIELD, "reduction.skip_nan");
  }
  reduction->clear_function();
  reduction->set_function_name("add");
  ExpectRefused(reduce, row, v1::ERROR_REASON_INVALID_FIELD, "reduction.skip_nan");
  reduction->clear_function_name();
  reduction->set_function(v1::Reduction::FUNCTION_MIN);
  EXPECT_EQ(Good(reduce, row).task.label(), "reduce nanmin");
  ExpectRefused(reduce, {Array(DType::kFloat32, {0})}, v1::ERROR_REASON_SHAPE_MISMATCH,
                "reduction.input");
  EXPECT_EQ(Good(reduce, {Array(DType::kInt16, {9})}).code->reduce().map().results_size(), 1);
}

TEST(PlanRandom, RefusesWithTheField) {
  v1::Operation operation;
  auto* random = operation.mutable_creation()->mutable_random();
  random->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  random->mutable_spec()->add_shape(5);
  operation.add_outputs()->set_handle(3);
  ExpectRefused(operation, {}, v1::ERROR_REASON_INVALID_FIELD, "creation.random");
  random->mutable_bits();
  ExpectRefused(operation, {}, v1::ERROR_REASON_DATA_TYPE_MISMATCH,
                "creation.random.spec.data_type");
  random->mutable_uniform()->set_low(2);
  ExpectRefused(operation, {}, v1::ERROR_REASON_INVALID_FIELD, "creation.random.uniform.high");
  random->mutable_normal()->set_deviation(-1);
  ExpectRefused(operation, {}, v1::ERROR_REASON_INVALID_FIELD, "creation.random.normal.deviation");
  random->mutable_normal()->set_deviation(1);
  EXPECT_EQ(Good(operation, {}).outputs[0], Contiguous(DType::kFloat32, {5}));
  random->set_generator(v1::Creation::Random::GENERATOR_THREEFRY_2X32);
  random->set_counter_high(1);
  ExpectRefused(operation, {}, v1::ERROR_REASON_INVALID_FIELD, "creation.random.counter_high");
  random->set_counter_high(0);
  random->mutable_spec()->set_data_type(v1::DATA_TYPE_INT8);
  random->mutable_integers()->mutable_high()->set_int_value(129);
  ExpectRefused(operation, {}, v1::ERROR_REASON_INVALID_FIELD, "creation.random.integers.high");
  random->mutable_integers()->mutable_high()->set_int_value(128);
  EXPECT_EQ(Good(operation, {}).outputs[0].dtype, DType::kInt8);
  // Functions internal to planners are not available to clients.
  ExpectRefused(testing::UfuncOf("random_normal", 1), {Array(DType::kFloat64, {3})},
                v1::ERROR_REASON_UNKNOWN_FUNCTION, "ufunc.function");
}

}  // namespace
}  // namespace stride::ops
