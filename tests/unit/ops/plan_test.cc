#include "server/ops/plan.h"

#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/range_length.h"
#include "server/ops/scalar.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using ::testing::HasSubstr;
using Extents = std::vector<int64_t>;
using testing::Array;
using testing::UfuncOf;

v1::Operation ReduceOf(v1::Reduction::Function function, std::vector<int32_t> axes = {},
                       bool keep = false) {
  v1::Operation operation;
  auto* reduction = operation.mutable_reduction();
  reduction->set_function(function);
  reduction->mutable_input()->set_handle(1);
  reduction->mutable_axes()->Assign(axes.begin(), axes.end());
  reduction->set_keep_dims(keep);
  operation.add_outputs()->set_handle(2);
  return operation;
}

v1::Operation MatmulOperation() {
  v1::Operation operation;
  operation.mutable_matmul()->mutable_left()->set_handle(1);
  operation.mutable_matmul()->mutable_right()->set_handle(2);
  operation.add_outputs()->set_handle(3);
  return operation;
}

TEST(PlanUfunc, BroadcastsAndPromotes) {
  auto plan = PlanOperation(UfuncOf("add", 2),
                            {Array(DType::kInt8, {3, 1}), Array(DType::kFloat32, {4})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0], Contiguous(DType::kFloat32, {3, 4}));
  EXPECT_EQ(plan->code->elementwise().layout().rank(), 2u);
  EXPECT_TRUE(plan->code->elementwise().index_32bit());
}

TEST(PlanUfunc, CodeDoesNotDependOnSizes) {
  auto a =
      PlanOperation(UfuncOf("add", 2), {Array(DType::kInt8, {3}), Array(DType::kInt8, {3})}, {});
  auto b = PlanOperation(UfuncOf("add", 2),
                         {Array(DType::kInt8, {50, 60}), Array(DType::kInt8, {50, 60})}, {});
  EXPECT_EQ(a->code->SerializeAsString(), b->code->SerializeAsString());
}

TEST(PlanUfunc, TwoOutputsShareOneLoop) {
  v1::Operation operation = UfuncOf("frexp", 1);
  EXPECT_THAT(
      std::string(PlanOperation(operation, {Array(DType::kFloat32, {3})}, {}).status().message()),
      HasSubstr("2 results"));
  operation.add_outputs()->set_handle(101);
  auto plan = PlanOperation(operation, {Array(DType::kInt16, {3})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0], Contiguous(DType::kFloat32, {3}));
  EXPECT_EQ(plan->outputs[1], Contiguous(DType::kInt32, {3}));
  EXPECT_EQ(plan->task.elementwise().outputs(1).arena(), 2u);
  operation.mutable_ufunc()->set_data_type(v1::DATA_TYPE_FLOAT64);
  plan = PlanOperation(operation, {Array(DType::kInt16, {3})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].dtype, DType::kFloat64);
  EXPECT_EQ(plan->outputs[1].dtype, DType::kInt32);
  // The second target's field is named.
  const Input existing[] = {Input(), Array(DType::kInt8, {4})};
  auto status = PlanOperation(operation, {Array(DType::kInt16, {3})}, existing).status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SHAPE_MISMATCH);
  EXPECT_EQ(testing::FieldOf(status), "outputs[1]");
}

TEST(PlanUfunc, CastingLimitsConversions) {
  v1::Operation operation = UfuncOf("add", 2);
  const std::vector<Input> floats = {Array(DType::kFloat64, {3}), Array(DType::kFloat32, {3})};
  auto with = [&](v1::Casting casting, v1::DataType type, const Input& existing = {}) {
    operation.mutable_ufunc()->set_casting(casting);
    operation.mutable_ufunc()->set_data_type(type);
    return PlanOperation(operation, floats, absl::MakeConstSpan(&existing, 1)).status();
  };
  EXPECT_TRUE(with(v1::CASTING_UNSPECIFIED, v1::DATA_TYPE_FLOAT32).ok());
  EXPECT_EQ(ReasonOf(with(v1::CASTING_SAFE, v1::DATA_TYPE_FLOAT32)),
            v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_EQ(ReasonOf(with(v1::CASTING_NO, v1::DATA_TYPE_UNSPECIFIED)),
            v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_TRUE(with(v1::CASTING_SAFE, v1::DATA_TYPE_UNSPECIFIED).ok());
  EXPECT_EQ(ReasonOf(with(v1::CASTING_UNSPECIFIED, v1::DATA_TYPE_INT32)),
            v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_TRUE(with(v1::CASTING_UNSAFE, v1::DATA_TYPE_INT32).ok());
  const Input target = Array(DType::kInt16, {3});
  EXPECT_EQ(ReasonOf(with(v1::CASTING_UNSPECIFIED, v1::DATA_TYPE_UNSPECIFIED, target)),
            v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_TRUE(with(v1::CASTING_UNSAFE, v1::DATA_TYPE_UNSPECIFIED, target).ok());
  EXPECT_EQ(ReasonOf(with(static_cast<v1::Casting>(77), v1::DATA_TYPE_UNSPECIFIED)),
            v1::ERROR_REASON_INVALID_FIELD);
}

TEST(PlanUfunc, WhereReadsTheKeptOutput) {
  v1::Operation operation = UfuncOf("add", 2);
  operation.mutable_ufunc()->mutable_where()->set_handle(7);
  std::vector<Input> inputs = {Array(DType::kFloat32, {3}), Array(DType::kFloat32, {3}),
                               Array(DType::kBool, {2, 1})};
  const Input target = Array(DType::kFloat32, {2, 3});
  auto plan = PlanOperation(operation, inputs, absl::MakeConstSpan(&target, 1));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].shape, (Extents{2, 3}));
  const auto& launch = plan->task.elementwise();
  EXPECT_EQ(launch.inputs(launch.inputs_size() - 1).arena(), 3u);
  inputs[2] = Array(DType::kInt8, {3});
  auto status = PlanOperation(operation, inputs, {}).status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_EQ(testing::FieldOf(status), "ufunc.where");
}

TEST(PlanUfunc, RefusesWithTheField) {
  auto status =
      PlanOperation(UfuncOf("add", 2), {Array(DType::kInt8, {3}), Array(DType::kInt8, {4})}, {})
          .status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SHAPE_MISMATCH);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(3,) (4,)"));
  status = PlanOperation(UfuncOf("ad", 2), {Array(DType::kInt8, {3}), Array(DType::kInt8, {3})}, {})
               .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean add"));
  EXPECT_EQ(ReasonOf(PlanOperation(UfuncOf("modf", 1), {Array(DType::kFloat32, {3})}, {}).status()),
            v1::ERROR_REASON_ARGUMENT_COUNT);
  // Each operand is small; the result would not be.
  Input wide = Contiguous(DType::kFloat64, {int64_t{1} << 40, 1});
  Input tall = Contiguous(DType::kFloat64, {1, int64_t{1} << 40});
  EXPECT_EQ(ReasonOf(PlanOperation(UfuncOf("add", 2), {wide, tall}, {}).status()),
            v1::ERROR_REASON_SIZE_LIMIT);
}

TEST(PlanUfunc, ExistingOutputs) {
  Input x = Array(DType::kFloat64, {3});
  auto plan = PlanOperation(UfuncOf("sin", 1), {x}, {Array(DType::kFloat32, {3})});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->code->elementwise().output_dtypes(0), static_cast<int>(DType::kFloat32));
  EXPECT_EQ(ReasonOf(PlanOperation(UfuncOf("sin", 1), {x}, {Array(DType::kInt32, {3})}).status()),
            v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_EQ(ReasonOf(PlanOperation(UfuncOf("sin", 1), {x}, {Array(DType::kFloat64, {4})}).status()),
            v1::ERROR_REASON_SHAPE_MISMATCH);
  ArrayInfo repeated = Contiguous(DType::kFloat64, {3});
  repeated.strides = {0};
  EXPECT_FALSE(PlanOperation(UfuncOf("sin", 1), {x}, {Input(repeated)}).ok());
}

TEST(PlanReduction, AccumulatorTypesFollowNumPy) {
  auto dtype = [](v1::Reduction::Function f, DType d) {
    auto plan = PlanOperation(ReduceOf(f), {Array(d, {4})}, {});
    return plan.ok() ? plan->outputs[0].dtype : DType::kComplex128;
  };
  using R = v1::Reduction;
  EXPECT_EQ(dtype(R::FUNCTION_SUM, DType::kInt8), DType::kInt64);
  EXPECT_EQ(dtype(R::FUNCTION_SUM, DType::kUInt16), DType::kUInt64);
  EXPECT_EQ(dtype(R::FUNCTION_SUM, DType::kBool), DType::kInt64);
  EXPECT_EQ(dtype(R::FUNCTION_SUM, DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(dtype(R::FUNCTION_MEAN, DType::kInt32), DType::kFloat64);
  EXPECT_EQ(dtype(R::FUNCTION_MEAN, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(dtype(R::FUNCTION_MAX, DType::kInt8), DType::kInt8);
  EXPECT_EQ(dtype(R::FUNCTION_ANY, DType::kComplex64), DType::kBool);
  EXPECT_EQ(dtype(R::FUNCTION_ARGMAX, DType::kFloat16), DType::kInt64);
  EXPECT_EQ(dtype(R::FUNCTION_NORM, DType::kInt64), DType::kFloat64);
  EXPECT_EQ(dtype(R::FUNCTION_NORM, DType::kComplex64), DType::kFloat32);
  auto half = PlanOperation(ReduceOf(R::FUNCTION_SUM), {Array(DType::kFloat16, {4})}, {});
  EXPECT_EQ(half->code->reduce().accumulator_dtype(), static_cast<int>(DType::kFloat32));
}

TEST(PlanReduction, AxesAndAccess) {
  using R = v1::Reduction;
  Input x = Array(DType::kFloat32, {20, 30, 40});
  auto rows = PlanOperation(ReduceOf(R::FUNCTION_SUM, {-1}), {x}, {});
  EXPECT_EQ(rows->outputs[0].shape, (Extents{20, 30}));
  EXPECT_EQ(rows->code->reduce().access(0), wire::Layout::ACCESS_CONTIGUOUS);
  EXPECT_EQ(rows->task.reduce().kept_extents(0), 600);
  auto columns = PlanOperation(ReduceOf(R::FUNCTION_SUM, {0}, true), {x}, {});
  EXPECT_EQ(columns->outputs[0].shape, (Extents{1, 30, 40}));
  EXPECT_TRUE(columns->code->reduce().kept_contiguous());
  auto all = PlanOperation(ReduceOf(R::FUNCTION_SUM), {x}, {});
  EXPECT_EQ(all->outputs[0].shape, Extents{});
  EXPECT_EQ(all->task.reduce().kept_extents_size(), 0);
  EXPECT_EQ(all->task.reduce().reduced_extents(0), 24000);
  EXPECT_FALSE(PlanOperation(ReduceOf(R::FUNCTION_SUM, {3}), {x}, {}).ok());
  EXPECT_FALSE(PlanOperation(ReduceOf(R::FUNCTION_SUM, {0, -3}), {x}, {}).ok());
  EXPECT_FALSE(PlanOperation(ReduceOf(R::FUNCTION_ARGMAX, {0, 1}), {x}, {}).ok());
}

v1::Operation SumOfExpression(const std::string& text, std::vector<int32_t> axes) {
  v1::Operation operation;
  auto* reduction = operation.mutable_reduction();
  reduction->set_function(v1::Reduction::FUNCTION_SUM);
  reduction->mutable_axes()->Assign(axes.begin(), axes.end());
  auto* expression = reduction->mutable_expression();
  expression->set_text(text);
  (*expression->mutable_inputs())["s"].mutable_scalar()->set_float_value(0.5);
  for (const char* name : {"x", "y", "z"}) (*expression->mutable_inputs())[name].set_handle(1);
  operation.add_outputs()->set_handle(5);
  return operation;
}

TEST(PlanReduction, ReducesAnExpression) {
  v1::Operation operation = SumOfExpression("(y - s) * x + z", {0});
  const Input matrix = Array(DType::kFloat32, {20, 30}), row = Array(DType::kFloat32, {30});
  // Operands by name, one of them a number.
  const std::vector<Input> inputs = {std::nullopt, matrix, row, matrix};
  auto plan = PlanOperation(operation, inputs, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].shape, Extents{30});
  const wire::ReduceLaunch& launch = plan->task.reduce();
  std::vector<uint32_t> slots;
  for (const wire::Operand& input : launch.inputs()) slots.push_back(input.arena());
  EXPECT_EQ(slots, (std::vector<uint32_t>{2, 1, 3}));
  EXPECT_EQ(launch.output().arena(), 4u);
  EXPECT_EQ(launch.map_scalars_size(), 1);
  EXPECT_FALSE(launch.has_array());
  EXPECT_TRUE(plan->code->reduce().kept_contiguous());

  v1::Reduction* reduction = operation.mutable_reduction();
  auto field = [&] { return testing::FieldOf(PlanOperation(operation, inputs, {}).status()); };
  reduction->mutable_input()->set_handle(1);
  EXPECT_EQ(field(), "reduction.expression");
  reduction->clear_input();
  reduction->set_function(v1::Reduction::FUNCTION_UNSPECIFIED);
  reduction->set_function_name("hypot");
  EXPECT_EQ(field(), "reduction.expression");
  reduction->clear_function_name();
  reduction->set_function(v1::Reduction::FUNCTION_SUM);
  reduction->mutable_expression()->set_text("y +");
  EXPECT_EQ(field(), "reduction.expression.text");
}

// An array of the elements determines how the work is cut, the inputs' axes how they are read.
TEST(PlanReduction, ReducesAnExpressionOfMixedLayouts) {
  const Input whole = Array(DType::kFloat32, {20, 30}), row = Array(DType::kInt16, {30});
  auto plan =
      PlanOperation(SumOfExpression("x * y + z * s", {}), {std::nullopt, whole, row, whole}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const wire::ReduceLaunch& launch = plan->task.reduce();
  EXPECT_THAT(launch.reduced_extents(), ::testing::ElementsAre(20, 30));
  EXPECT_THAT(launch.array().reduced_extents(), ::testing::ElementsAre(600));
  const wire::ReduceCode::Computed& computed = plan->code->reduce().computed();
  EXPECT_EQ(computed.dtype(), static_cast<int>(DType::kFloat32));
  EXPECT_EQ(computed.access(), wire::Layout::ACCESS_CONTIGUOUS);
  EXPECT_EQ(computed.reduced_rank(), 1u);
  EXPECT_EQ(computed.row_axes(), 2u);

  // The inputs could merge these axes, the array cannot.
  const Input flat = Array(DType::kFloat32, {20, 1, 30});
  ArrayInfo repeated = Contiguous(DType::kFloat32, {20, 5, 30});
  repeated.strides = {0, 0, 0};
  plan = PlanOperation(SumOfExpression("x + y * z + s", {0, 2}),
                       {std::nullopt, flat, flat, Input(repeated)}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->task.reduce().reduced_extents(), ::testing::ElementsAre(20, 30));
  EXPECT_FALSE(plan->task.reduce().has_array());
}

TEST(PlanReduction, EmptyArrays) {
  using R = v1::Reduction;
  EXPECT_TRUE(PlanOperation(ReduceOf(R::FUNCTION_SUM), {Array(DType::kInt8, {0})}, {}).ok());
  EXPECT_EQ(
      ReasonOf(PlanOperation(ReduceOf(R::FUNCTION_MAX), {Array(DType::kInt8, {0})}, {}).status()),
      v1::ERROR_REASON_SHAPE_MISMATCH);
  EXPECT_TRUE(
      PlanOperation(ReduceOf(R::FUNCTION_ARGMAX, {1}), {Array(DType::kInt8, {0, 3})}, {}).ok());
  EXPECT_FALSE(
      PlanOperation(ReduceOf(R::FUNCTION_ARGMAX, {0}), {Array(DType::kInt8, {0, 3})}, {}).ok());
}

TEST(PlanMatmul, ShapesAndBatches) {
  auto shape = [](Extents a, Extents b) {
    auto plan = PlanOperation(MatmulOperation(),
                              {Array(DType::kFloat32, a), Array(DType::kFloat32, b)}, {});
    return plan.ok() ? plan->outputs[0].shape : Extents{-1};
  };
  EXPECT_EQ(shape({2, 3}, {3, 4}), (Extents{2, 4}));
  EXPECT_EQ(shape({3}, {3, 4}), Extents{4});
  EXPECT_EQ(shape({2, 3}, {3}), Extents{2});
  EXPECT_EQ(shape({3}, {3}), Extents{});
  EXPECT_EQ(shape({5, 1, 2, 3}, {6, 3, 4}), (Extents{5, 6, 2, 4}));
  EXPECT_EQ(shape({7, 2, 3}, {3}), (Extents{7, 2}));
  EXPECT_EQ(shape({2, 3}, {4, 3}), Extents{-1});
  EXPECT_EQ(shape({}, {3}), Extents{-1});
  EXPECT_EQ(shape({2, 2, 3}, {3, 3, 4}), Extents{-1});
  auto integers = PlanOperation(MatmulOperation(),
                                {Array(DType::kInt8, {2, 3}), Array(DType::kInt8, {3, 2})}, {});
  EXPECT_EQ(integers->code->matmul().dtype(), static_cast<int>(DType::kInt8));
  auto mixed = PlanOperation(MatmulOperation(),
                             {Array(DType::kInt8, {2, 3}), Array(DType::kFloat32, {3, 2})}, {});
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->outputs[0].dtype, DType::kFloat32);
  ASSERT_EQ(mixed->converted_inputs.size(), 2u);
  EXPECT_EQ(mixed->converted_inputs[0], DType::kFloat32);
  EXPECT_FALSE(mixed->converted_inputs[1].has_value());
}

TEST(PlanMatmul, SumsInTheRequestedType) {
  auto plan = [](DType left, DType right, v1::DataType data_type) {
    v1::Operation operation = MatmulOperation();
    operation.mutable_matmul()->set_data_type(data_type);
    return PlanOperation(operation, {Array(left, {2, 3}), Array(right, {3, 2})}, {});
  };
  auto bytes = plan(DType::kInt8, DType::kUInt8, v1::DATA_TYPE_UINT32);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(bytes->converted_inputs.empty());
  EXPECT_EQ(bytes->outputs[0].dtype, DType::kUInt32);
  const wire::MatmulCode& code = bytes->code->matmul();
  EXPECT_EQ(code.dtype(), static_cast<int>(DType::kInt32)) << "one code for both, of equal bits";
  EXPECT_EQ(code.left(), static_cast<int>(DType::kInt8));
  EXPECT_EQ(code.right(), static_cast<int>(DType::kUInt8));
  auto mixed = plan(DType::kInt8, DType::kUInt8, v1::DATA_TYPE_UNSPECIFIED);
  EXPECT_TRUE(mixed->converted_inputs.empty());
  EXPECT_EQ(mixed->outputs[0].dtype, DType::kInt16);
  // Sums of 64 bits and wider need factors of one type.
  for (auto [left, data_type] :
       {std::pair(DType::kInt8, v1::DATA_TYPE_INT64), {DType::kInt16, v1::DATA_TYPE_INT32}}) {
    auto converted = plan(left, DType::kInt8, data_type);
    ASSERT_TRUE(converted.ok()) << converted.status();
    EXPECT_THAT(converted->converted_inputs, ::testing::Each(static_cast<DType>(data_type)));
  }
  EXPECT_FALSE(plan(DType::kInt8, DType::kInt8, static_cast<v1::DataType>(99)).ok());
}

TEST(PlanMatmul, UnsuitableOutputUsesATemporary) {
  auto through = [](const ArrayInfo& output) {
    auto plan = PlanOperation(MatmulOperation(),
                              {Array(DType::kFloat32, {2, 3}), Array(DType::kFloat32, {3, 2})},
                              {Input(output)});
    return plan.ok() ? absl::StatusOr<bool>(plan->through_new_output) : plan.status();
  };
  ArrayInfo transposed = Contiguous(DType::kFloat32, {2, 2});
  EXPECT_FALSE(*through(transposed));
  transposed.strides = {4, 8};
  EXPECT_TRUE(*through(transposed));
  EXPECT_TRUE(*through(Contiguous(DType::kFloat64, {2, 2})));
  EXPECT_EQ(ReasonOf(through(Contiguous(DType::kInt32, {2, 2})).status()),
            v1::ERROR_REASON_DATA_TYPE_MISMATCH)
      << "no cast of the same kind";
}

TEST(PlanMatmul, MatrixVectorProductIsAReduction) {
  auto plan = PlanOperation(MatmulOperation(),
                            {Array(DType::kFloat16, {7, 5, 9}), Array(DType::kFloat32, {9})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->task.has_reduce());
  EXPECT_EQ(plan->outputs[0], Contiguous(DType::kFloat32, {7, 5}));
  EXPECT_THAT(plan->task.reduce().reduced_extents(), ::testing::ElementsAre(9));
  // A single column is still an axis. The library computes contiguous columns.
  plan = PlanOperation(MatmulOperation(),
                       {Array(DType::kFloat64, {7, 9}), Array(DType::kFloat64, {9, 1})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->task.has_reduce());
  EXPECT_EQ(plan->outputs[0], Contiguous(DType::kFloat64, {7, 1}));
  const ArrayInfo transposed{DType::kFloat64, {7, 9}, {8, 56}, 0};
  plan = PlanOperation(MatmulOperation(), {Input(transposed), Array(DType::kFloat64, {9})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->task.has_matmul());
}

TEST(PlanMatmul, KeepsStrides) {
  ArrayInfo transposed = Contiguous(DType::kFloat32, {3, 2});
  transposed.strides = {4, 12};
  auto plan =
      PlanOperation(MatmulOperation(), {Input(transposed), Array(DType::kFloat32, {8, 2, 5})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& left = plan->task.matmul().left().strides();
  EXPECT_EQ(Extents(left.begin(), left.end()), (Extents{0, 4, 12}));
  EXPECT_EQ(plan->task.matmul().batch_extents(0), 8);
}

TEST(RangeLength, LengthFollowsNumPy) {
  auto length = [](WeakScalar a, WeakScalar b, WeakScalar c) {
    return RangeLength(a, b, c, "x").value_or(-1);
  };
  EXPECT_EQ(length(Integer{0}, Integer{10}, Integer{3}), 4);
  EXPECT_EQ(length(Integer{10}, Integer{0}, Integer{-3}), 4);
  EXPECT_EQ(length(Integer{5}, Integer{5}, Integer{1}), 0);
  EXPECT_EQ(length(Integer{5}, Integer{0}, Integer{1}), 0);
  EXPECT_EQ(length(Integer{0}, Integer{1}, Integer{0}), -1);
  EXPECT_EQ(length(0.0, 1.0, 0.1), 10);
  EXPECT_EQ(length(1.0, 1.3, 0.1), 4);  // rounding adds one, in NumPy too
  EXPECT_EQ(length(0.0, NAN, 1.0), -1);
  EXPECT_EQ(length(0.0, INFINITY, 1.0), -1);
  EXPECT_EQ(length(Integer{INT64_MIN}, Integer{INT64_MAX}, Integer{1}), -1);
}

v1::Operation RangeOf(double stop) {
  v1::Operation operation;
  operation.mutable_creation()->mutable_range()->mutable_stop()->set_int_value(
      static_cast<int64_t>(stop));
  operation.add_outputs()->set_handle(1);
  return operation;
}

TEST(PlanCreation, RangeFillAndLinearSpace) {
  auto range = PlanOperation(RangeOf(100000), {}, {});
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->outputs[0], Contiguous(DType::kInt64, {100000}));
  v1::Operation narrow = RangeOf(300);
  narrow.mutable_creation()->mutable_range()->set_data_type(v1::DATA_TYPE_UINT8);
  EXPECT_FALSE(PlanOperation(narrow, {}, {}).ok());
  v1::Operation fill;
  fill.add_outputs()->set_handle(1);
  auto* spec = fill.mutable_creation()->mutable_fill()->mutable_spec();
  spec->set_data_type(v1::DATA_TYPE_FLOAT32);
  spec->add_shape(7);
  EXPECT_TRUE(PlanOperation(fill, {}, {})->task.has_zero_fill());
  fill.mutable_creation()->mutable_fill()->mutable_value()->set_float_value(-0.0);
  EXPECT_TRUE(PlanOperation(fill, {}, {})->task.has_elementwise());  // minus zero is not zero bytes
  for (int i = 0; i < 40; ++i) spec->add_shape(1);
  EXPECT_EQ(ReasonOf(PlanOperation(fill, {}, {}).status()), v1::ERROR_REASON_SIZE_LIMIT);
  v1::Operation space;
  space.add_outputs()->set_handle(1);
  auto* linear = space.mutable_creation()->mutable_linear_space();
  linear->mutable_start()->set_int_value(0);
  linear->mutable_stop()->set_int_value(1);
  linear->set_count(5);
  EXPECT_EQ(PlanOperation(space, {}, {})->outputs[0].dtype, DType::kFloat64);
  linear->set_count(-1);
  EXPECT_FALSE(PlanOperation(space, {}, {}).ok());
}

TEST(PlanCreation, EmptyWritesNothing) {
  v1::Operation empty;
  empty.add_outputs()->set_handle(1);
  auto* spec = empty.mutable_creation()->mutable_empty()->mutable_spec();
  spec->set_data_type(v1::DATA_TYPE_FLOAT32);
  spec->add_shape(7);
  const auto plan = PlanOperation(empty, {}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0], Contiguous(DType::kFloat32, {7}));
  ASSERT_TRUE(plan->task.has_zero_fill());
  EXPECT_EQ(plan->task.zero_fill().size(), 0);
  EXPECT_EQ(plan->bytes, 0);
  // An existing array would keep its values, which the caller cannot intend.
  EXPECT_FALSE(PlanOperation(empty, {}, {Array(DType::kFloat32, {7})}).ok());
  spec->set_shape(0, -1);
  EXPECT_FALSE(PlanOperation(empty, {}, {}).ok());
}

TEST(PlanCopy, SameLayoutCopiesBytes) {
  v1::Operation copy;
  copy.mutable_copy()->mutable_input()->set_handle(1);
  copy.add_outputs()->set_handle(2);
  EXPECT_TRUE(PlanOperation(copy, {Array(DType::kInt8, {4, 5})}, {})->task.has_copy_bytes());
  ArrayInfo turned = Contiguous(DType::kInt8, {4, 5});
  turned.strides = {1, 4};
  EXPECT_TRUE(PlanOperation(copy, {Input(turned)}, {})->task.has_elementwise());
  copy.mutable_copy()->set_data_type(v1::DATA_TYPE_INT32);
  EXPECT_EQ(PlanOperation(copy, {Array(DType::kFloat64, {4})}, {})->outputs[0].dtype,
            DType::kInt32);
  copy.mutable_copy()->set_move(true);
  EXPECT_FALSE(PlanOperation(copy, {Array(DType::kFloat64, {4})}, {}).ok());
}

TEST(Bind, ReplacesSlots) {
  auto plan =
      PlanOperation(UfuncOf("add", 2), {Array(DType::kInt8, {3}), Array(DType::kInt8, {3})}, {});
  Bind(&plan->task, {{11, 100}, {12, 200}, {13, 300}});
  EXPECT_EQ(plan->task.elementwise().inputs(1).arena(), 12u);
  EXPECT_EQ(plan->task.elementwise().inputs(1).offset(), 200u);
  EXPECT_EQ(plan->task.elementwise().outputs(0).arena(), 13u);
}

TEST(Scalar, NarrowFloatsRoundToNearestEven) {
  EXPECT_EQ(ToFloat16(1.0), 0x3C00);
  EXPECT_EQ(ToFloat16(-2.0), 0xC000);
  EXPECT_EQ(ToFloat16(65504), 0x7BFF);
  EXPECT_EQ(ToFloat16(65519.99), 0x7BFF);
  EXPECT_EQ(ToFloat16(65520), 0x7C00);
  EXPECT_EQ(ToFloat16(0x1p-24), 0x0001);
  EXPECT_EQ(ToFloat16(0x1p-25), 0x0000);
  EXPECT_EQ(ToFloat16(0x1.8p-25), 0x0001);
  EXPECT_EQ(ToFloat16(0x1p-14), 0x0400);
  EXPECT_EQ(ToFloat16(1 + 0x1p-11), 0x3C00);
  EXPECT_EQ(ToFloat16(1 + 0x3p-11), 0x3C02);
  EXPECT_EQ(ToFloat16(-0.0), 0x8000);
  EXPECT_EQ(ToBFloat16(1.0), 0x3F80);
  EXPECT_EQ(ToBFloat16(3.4e38), 0x7F80);
  EXPECT_EQ(ToBFloat16(0x1p-133), 0x0001);
}

}  // namespace
}  // namespace stride::ops
