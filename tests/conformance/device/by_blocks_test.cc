// Operations without compiled code of their own: results equal those of compiled code bit for bit.
// computed_test.cc has reductions of expressions.
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "server/ops/block_loops.h"
#include "server/ops/reduce_by_blocks.h"
#include "tests/conformance/device/harness.h"
#include "tests/support/cases.h"
#include "tests/support/plan_helpers.h"
#include "tests/support/random_expressions.h"

namespace stride::conformance {
namespace {

using ops::testing::ExpressionOf;

class ByBlocksTest : public DeviceTest {
 protected:
  // The operation's task, prepared to run by blocks.
  absl::StatusOr<wire::Task> PrepareByBlocks(const v1::Operation& operation,
                                             const std::vector<DeviceArray>& inputs,
                                             const DeviceArray* existing, DeviceArray* output) {
    std::vector<ops::Input> infos;
    for (const DeviceArray& input : inputs) infos.emplace_back(input.info);
    const ops::Input target = existing == nullptr ? ops::Input() : ops::Input(existing->info);
    auto plan = ops::PlanOperation(operation, infos, {target});
    if (!plan.ok()) return plan.status();
    EXPECT_TRUE(ops::RunsByBlocks(plan->code->elementwise().program()))
        << operation.ShortDebugString();
    wire::Code loops;
    loops.mutable_block_loops();
    auto task = harness().Prepare(operation, inputs, existing, output, &loops);
    if (!task.ok()) return task.status();
    *task->mutable_elementwise()->mutable_by_blocks() = plan->code->elementwise().program();
    return task;
  }

  HostArray RunByBlocks(const v1::Operation& operation, const std::vector<DeviceArray>& inputs) {
    DeviceArray output;
    auto task = PrepareByBlocks(operation, inputs, nullptr, &output);
    EXPECT_TRUE(task.ok()) << task.status() << operation.ShortDebugString();
    if (!task.ok()) return {};
    const absl::Status status = harness().Run(*task);
    EXPECT_TRUE(status.ok()) << status << operation.ShortDebugString();
    return harness().Get(output);
  }

  void ExpectEqualTiers(const v1::Operation& operation, const std::vector<DeviceArray>& inputs) {
    auto fused = harness().Compute(operation, inputs);
    ASSERT_TRUE(fused.ok()) << fused.status() << operation.ShortDebugString();
    const HostArray expected = harness().Get(*fused);
    const HostArray got = RunByBlocks(operation, inputs);
    ASSERT_EQ(got.info.shape, expected.info.shape);
    ASSERT_EQ(testing::FirstDifference(expected.info.dtype, expected.buffer, got.buffer), -1)
        << operation.ShortDebugString();
  }

  // A reduction with compiled code and without.
  void ExpectEqualReductions(const v1::Operation& operation,
                             const std::vector<DeviceArray>& inputs) {
    auto own = harness().Compute(operation, inputs);
    ASSERT_TRUE(own.ok()) << own.status() << operation.ShortDebugString();
    DeviceArray output;
    std::vector<ops::Input> infos;
    for (const DeviceArray& input : inputs) infos.emplace_back(input.info);
    auto plan = ops::PlanOperation(operation, infos, {});
    auto task = harness().Prepare(operation, inputs, nullptr, &output);
    ASSERT_TRUE(plan.ok() && task.ok()) << task.status();
    const auto plain = ops::PlainReduceCode(plan->code->reduce(), harness().subject().runs);
    ASSERT_TRUE(plain.has_value()) << operation.ShortDebugString();
    wire::Code block_loops;
    block_loops.mutable_block_loops();
    auto loops = harness().Load(block_loops);
    auto module = harness().Load(*plain);
    ASSERT_TRUE(loops.ok() && module.ok()) << loops.status() << module.status();
    task->mutable_reduce()->set_module(*module);
    *task->mutable_reduce()->mutable_by_blocks() =
        ops::ReduceByBlocks(plan->code->reduce(), *loops);
    const absl::Status status = harness().Run(*task);
    ASSERT_TRUE(status.ok()) << status;
    const HostArray expected = harness().Get(*own), got = harness().Get(output);
    ASSERT_EQ(testing::FirstDifference(expected.info.dtype, expected.buffer, got.buffer), -1)
        << operation.ShortDebugString();
  }

  static HostArray Numbers(DType dtype, std::vector<int64_t> shape) {
    return Make(dtype, std::move(shape),
                [](int64_t i) { return Value(static_cast<double>(i * 7919 % 1009 - 504) / 64); });
  }
};

TEST_F(ByBlocksTest, RandomExpressionsAreBitIdenticalToFusedLoops) {
  testing::RandomExpressions random(48);
  // A CPU device's unit tests compare more (block_program_test.cc).
  const bool is_cpu = harness().subject().description.target().starts_with("cpu");
  for (int i = 0; i < (is_cpu ? 30 : 150); ++i) {
    const testing::RandomExpression expression = random.Next();
    std::vector<DeviceArray> inputs;
    for (const testing::RandomArray& array : expression.arrays)
      inputs.push_back(harness().Put({array.info, array.buffer}));
    ASSERT_NO_FATAL_FAILURE(ExpectEqualTiers(expression.operation, inputs))
        << expression.text << " number " << i;
    harness().Reset();
  }
}

// All operations and types, with one module.
TEST_F(ByBlocksTest, UfuncCases) {
  const char* given = std::getenv("STRIDE_TEST_CASES");
  auto cases =
      testing::ReadCases(absl::StrCat(given != nullptr ? given : STRIDE_CASES, "/ufunc.case"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  int failures = 0;
  for (const testing::OpCase& op_case : *cases) {
    std::vector<DeviceArray> inputs;
    for (const testing::Column& column : op_case.inputs)
      inputs.push_back(harness().Put({Contiguous(column.dtype, {op_case.count}), column.bytes}));
    const HostArray got = RunByBlocks(UfuncOf(op_case.op, static_cast<int>(inputs.size())), inputs);
    const std::string wrong = testing::Differences(op_case, got.buffer);
    if (!wrong.empty() && ++failures <= 20) ADD_FAILURE() << wrong;
    harness().Reset();
  }
  EXPECT_EQ(failures, 0);
}

// Part of a block, many blocks, more blocks than run at once.
TEST_F(ByBlocksTest, EverySize) {
  for (int64_t n : {1, 31, 256, 257, 1023, 1024, 1025, 65537, 3000001}) {
    ASSERT_NO_FATAL_FAILURE(ExpectEqualTiers(ExpressionOf("where(a > 1, a * 3 + a, 0.5)", {"a"}),
                                             {harness().Put(Numbers(DType::kFloat32, {n}))}))
        << n;
    harness().Reset();
  }
}

TEST_F(ByBlocksTest, LayoutsOfLargeArrays) {
  const HostArray plain = Numbers(DType::kFloat64, {700, 900});
  for (const HostArray& other :
       {Transposed(Numbers(DType::kFloat32, {900, 700})), Reversed(plain, 1),
        Repeated(Numbers(DType::kInt16, {900}), {700, 900}),
        Repeated(Numbers(DType::kFloat64, {1, 1}), {700, 900})}) {
    ASSERT_NO_FATAL_FAILURE(ExpectEqualTiers(ExpressionOf("sqrt(abs(a)) - b * 2", {"a", "b"}),
                                             {harness().Put(plain), harness().Put(other)}));
    harness().Reset();
  }
}

// Values that are all needed at the end take many slots, so that blocks are short.
TEST_F(ByBlocksTest, ManyValuesAtOnce) {
  for (DType dtype : {DType::kFloat32, DType::kComplex128}) {
    std::string text = "a";
    for (int i = 1; i < 45; ++i) text = absl::StrCat("(a * ", i, " + a) - (", text, ")");
    ASSERT_NO_FATAL_FAILURE(
        ExpectEqualTiers(ExpressionOf(text, {"a"}), {harness().Put(Numbers(dtype, {5000}))}));
    harness().Reset();
  }
}

TEST_F(ByBlocksTest, IndicesAndRandomNumbers) {
  v1::Operation range;
  auto* numbers = range.mutable_creation()->mutable_range();
  numbers->mutable_start()->set_float_value(0.25);
  numbers->mutable_stop()->set_float_value(15000);
  numbers->mutable_step()->set_float_value(3);
  range.add_outputs()->set_handle(100);
  ExpectEqualTiers(range, {});
  using Random = v1::Creation::Random;
  for (auto generator : {Random::GENERATOR_PHILOX_4X32, Random::GENERATOR_THREEFRY_2X32}) {
    for (v1::DataType dtype : {v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_FLOAT64}) {
      v1::Operation operation;
      operation.add_outputs()->set_handle(100);
      Random* random = operation.mutable_creation()->mutable_random();
      random->mutable_spec()->set_data_type(dtype);
      random->mutable_spec()->add_shape(5000);
      random->set_generator(generator);
      random->mutable_normal()->set_mean(3);
      ExpectEqualTiers(operation, {});
    }
  }
}

TEST_F(ByBlocksTest, OutputMayBeAnInput) {
  const HostArray numbers = Numbers(DType::kFloat64, {5000});
  const DeviceArray array = harness().Put(numbers);
  v1::Operation operation = ExpressionOf("abs(a) + a * a", {"a"});
  operation.mutable_outputs(0)->set_existing(true);
  DeviceArray output;
  auto task = PrepareByBlocks(operation, {array}, &array, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  const absl::Status status = harness().Run(*task);
  ASSERT_TRUE(status.ok()) << status;
  const HostArray got = harness().Get(array);
  for (int64_t i = 0; i < 5000; ++i) {
    const double x = numbers.At(i).real();
    ASSERT_EQ(got.At(i).real(), std::abs(x) + x * x) << i;
  }
}

// More values than a device computes at once: for parts of one result, some rows, or some columns.
TEST_F(ByBlocksTest, ReductionsOfManyValues) {
  using R = v1::Reduction;
  struct Shape {
    std::vector<int64_t> rows, columns;
    std::vector<int32_t> axes;
  };
  for (const Shape& shape : {Shape{{4500, 1}, {1, 4096}, {}},
                             {{4500, 1}, {1, 4096}, {1}},
                             {{4500, 1}, {1, 4096}, {0}},
                             {{3, 1}, {1, 6000000}, {1}},
                             {{9000, 1, 1}, {1, 70, 30}, {0}}}) {
    for (R::Function function : {R::FUNCTION_SUM, R::FUNCTION_MAX, R::FUNCTION_ARGMIN}) {
      if (function == R::FUNCTION_ARGMIN && shape.axes.empty()) continue;
      v1::Operation operation = ReductionOf(function, shape.axes);
      operation.mutable_reduction()->clear_input();
      *operation.mutable_reduction()->mutable_expression() =
          ExpressionOf("a * 0.7 - b", {"a", "b"}).expression();
      ASSERT_NO_FATAL_FAILURE(ExpectEqualReductions(
          operation, {harness().Put(Numbers(DType::kFloat32, shape.rows)),
                      harness().Put(Numbers(DType::kFloat32, shape.columns))}));
      harness().Reset();
    }
  }
}

// Every type and function, with elements of one size and accumulators of another.
TEST_F(ByBlocksTest, ReductionsOfEveryType) {
  using R = v1::Reduction;
  for (int number = 1; number <= kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    const HostArray numbers = Numbers(dtype, {70, 300});
    for (R::Function function : {R::FUNCTION_SUM, R::FUNCTION_MEAN, R::FUNCTION_MIN}) {
      const v1::Operation rows = ReductionOf(function, {1}), columns = ReductionOf(function, {0});
      const ops::Input info(numbers.info);
      if (!ops::PlanOperation(rows, {info}, {ops::Input()}).ok()) continue;  // no such loop
      ASSERT_NO_FATAL_FAILURE(ExpectEqualReductions(rows, {harness().Put(numbers)}));
      ASSERT_NO_FATAL_FAILURE(ExpectEqualReductions(columns, {harness().Put(numbers)}));
      ASSERT_NO_FATAL_FAILURE(
          ExpectEqualReductions(rows, {harness().Put(EverySecond(numbers, 1))}));
      harness().Reset();
    }
  }
}

// Tasks of one packet may go to the device as one launch, with code of either tier.
TEST_F(ByBlocksTest, BothTiersInOnePacket) {
  constexpr int kTasks = 40;
  DeviceArray array = harness().Put(Numbers(DType::kFloat64, {3000}));
  const HostArray numbers = harness().Get(array);
  std::vector<wire::Task> tasks;
  for (int i = 0; i < kTasks; ++i) {
    const v1::Operation operation = ExpressionOf("a * 0.5 + 1", {"a"});
    DeviceArray output;
    auto task = i % 3 == 0 ? harness().Prepare(operation, {array}, nullptr, &output)
                           : PrepareByBlocks(operation, {array}, nullptr, &output);
    ASSERT_TRUE(task.ok()) << task.status();
    tasks.push_back(*std::move(task));
    array = output;
  }
  const uint64_t last = harness().SubmitAll(tasks);
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  const HostArray got = harness().Get(array);
  for (int64_t i = 0; i < 3000; ++i) {
    double x = numbers.At(i).real();
    for (int k = 0; k < kTasks; ++k) x = x * 0.5 + 1;
    ASSERT_EQ(got.At(i).real(), x) << i;
  }
}

}  // namespace
}  // namespace stride::conformance
