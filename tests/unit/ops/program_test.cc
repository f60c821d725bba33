// Programs: refusals, fusion into one loop, and equality of fused loops with their operations.

#include <google/protobuf/text_format.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/program_plan.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::CountOps;
using testing::FieldOf;

v1::Program ProgramOf(const std::string& text) {
  v1::Program program;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &program)) << text;
  return program;
}

std::string Unary(const std::string& function, int from, int to) {
  return " operations { ufunc { function: '" + function +
         "' inputs { handle: " + std::to_string(from) +
         " } } outputs { handle: " + std::to_string(to) + " } } ";
}
std::string Binary(const std::string& function, int left, int right, int to) {
  return " operations { ufunc { function: '" + function +
         "' inputs { handle: " + std::to_string(left) +
         " } inputs { handle: " + std::to_string(right) +
         " } } outputs { handle: " + std::to_string(to) + " } } ";
}

ProgramPlan Planned(const std::string& text, const std::vector<ArrayInfo>& inputs) {
  const v1::Program program = ProgramOf(text);
  EXPECT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  auto plan = PlanProgram(program, inputs, nullptr);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ProgramPlan();
}

TEST(CheckProgram, RefusesWithTheField) {
  struct Case {
    std::string text, field;
  };
  for (
      const Case& c : {
          Case{"inputs { handle: 1 } outputs: 1", "operations"},
          Case{"inputs { handle: 1 }" + Unary("cos", 1, 2), "outputs"},
          Case{"inputs { handle: 1 } outputs: 1" + Unary("cos", 1, 2), "outputs[0]"},
          Case{"inputs { handle: 1 } outputs: 2 outputs: 2" + Unary("cos", 1, 2), "outputs"},
          Case{"inputs { handle: 1 } outputs: 2" + Unary("cos", 3, 2),
               "operations[0].ufunc.inputs[0].handle"},
          Case{"inputs { handle: 1 } outputs: 1" + Unary("cos", 1, 1), "operations[0].outputs[0]"},
          Case{"inputs { handle: 1 } inputs { handle: 1 } outputs: 2" + Unary("cos", 1, 2),
               "inputs[1].handle"},
          Case{"inputs { handle: 1 } inputs { handle: 2 spec { data_type: DATA_TYPE_INT8 } } "
               "outputs: 3" +
                   Unary("cos", 1, 3),
               "inputs[1].spec"},
          Case{"outputs: 2 operations { ufunc { function: 'cos' inputs { name: 'x' } } outputs { "
               "handle: 2 } }",
               "operations[0].ufunc.inputs[0]"},
          Case{
              "inputs { handle: 1 } outputs: 2 operations { copy { input { handle: 1 } } outputs { "
              "name: 'x' } }",
              "operations[0].outputs[0]"},
          // Inputs are never written.
          Case{
              "inputs { handle: 1 } outputs: 2 operations { copy { input { handle: 1 } } outputs { "
              "handle: 1 existing: true } }" +
                  Unary("cos", 1, 2),
              "operations[0].outputs[0]"},
      }) {
    const absl::Status status = CheckProgram(ProgramOf(c.text));
    EXPECT_FALSE(status.ok()) << c.text;
    EXPECT_EQ(FieldOf(status), c.field) << c.text << ": " << status;
  }
}

const ArrayInfo kVector = Contiguous(DType::kFloat32, {100});

TEST(CheckProgram, RunsOnOneDevice) {
  const absl::Status status = CheckProgram(
      ProgramOf("inputs { handle: 1 } outputs: 2 operations { copy { input { handle: 1 } } "
                "outputs { handle: 2 sharding { axis: 0 } } }"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("operations[0].outputs[0].sharding"), absl::string_view::npos)
      << status;
}

TEST(PlanProgram, ChainIsOneLoop) {
  const ProgramPlan plan = Planned(
      "inputs { handle: 1 } inputs { handle: 2 } outputs: 6 " + Unary("cos", 1, 3) +
          Unary("sin", 2, 4) + Binary("add", 3, 4, 5) +
          "operations { expression { text: 'x * 2 + x' inputs { key: 'x' value { handle: 5 } } } "
          "outputs { handle: 6 } }",
      {kVector, kVector});
  ASSERT_EQ(plan.steps.size(), 1u);
  const ProgramStep& step = plan.steps[0];
  EXPECT_EQ(step.inputs, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(step.outputs, (std::vector<uint64_t>{6}));
  // Each input once, although the expression names it twice.
  EXPECT_EQ(CountOps(step.plan->code->elementwise().program()), 5);
  EXPECT_EQ(plan.outputs[0], kVector);
}

TEST(PlanProgram, SharedResultsAreNotFused) {
  const std::string inputs = "inputs { handle: 1 } inputs { handle: 2 } ";
  // In turn: a result of the program, a value read twice, another shape, and an operation without a
  // loop.
  EXPECT_EQ(Planned(inputs + "outputs: 3 outputs: 4 " + Unary("cos", 1, 3) + Unary("sin", 3, 4),
                    {kVector, kVector})
                .steps.size(),
            2u);
  EXPECT_EQ(Planned(inputs + "outputs: 5 " + Unary("cos", 1, 3) + Unary("sin", 3, 4) +
                        Binary("add", 3, 4, 5),
                    {kVector, kVector})
                .steps.size(),
            2u);
  const ArrayInfo matrix = Contiguous(DType::kFloat32, {50, 100});
  EXPECT_EQ(Planned(inputs + "outputs: 4 " + Unary("cos", 1, 3) + Binary("add", 3, 2, 4),
                    {kVector, matrix})
                .steps.size(),
            2u);
  EXPECT_EQ(Planned(inputs + "outputs: 4 " + Unary("cos", 1, 3) +
                        "operations { accumulation { function: 'add' input { handle: 3 } } "
                        "outputs { handle: 4 } }",
                    {kVector, kVector})
                .steps.size(),
            2u);
}

std::string Reduce(const std::string& function, int input, int output) {
  return absl::StrCat("operations { reduction { function: ", function, " input { handle: ", input,
                      " } } outputs { handle: ", output, " } } ");
}

TEST(PlanProgram, ReductionsComputeTheirElements) {
  const std::string inputs = "inputs { handle: 1 } inputs { handle: 2 } ";
  const ProgramPlan plan = Planned(inputs + "outputs: 5 " + Binary("subtract", 1, 2, 3) +
                                       Unary("square", 3, 4) + Reduce("FUNCTION_SUM", 4, 5),
                                   {kVector, kVector});
  ASSERT_EQ(plan.steps.size(), 1u);
  const ProgramStep& step = plan.steps[0];
  EXPECT_EQ(step.inputs, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(step.outputs, (std::vector<uint64_t>{5}));
  EXPECT_EQ(step.plan->task.reduce().inputs_size(), 2);
  EXPECT_EQ(step.plan->task.reduce().output().arena(), 2u);
  EXPECT_EQ(plan.outputs[0], Contiguous(DType::kFloat32, {}));
}

TEST(PlanProgram, ReductionsComputeElementsInEveryLayout) {
  const std::string inputs = "inputs { handle: 1 } inputs { handle: 2 } ";
  auto num_steps = [&](const std::string& function, const ArrayInfo& second) {
    return Planned(inputs + "outputs: 4 " + Binary("add", 1, 2, 3) + Reduce(function, 3, 4),
                   {Contiguous(DType::kFloat32, {50, 100}), second})
        .steps.size();
  };
  ArrayInfo transposed = Contiguous(DType::kFloat32, {50, 100});
  transposed.strides = {4, 200};
  for (const ArrayInfo& second :
       {Contiguous(DType::kFloat32, {50, 100}), Contiguous(DType::kFloat32, {}),
        Contiguous(DType::kInt16, {100}), Contiguous(DType::kFloat64, {50, 1}), transposed}) {
    EXPECT_EQ(num_steps("FUNCTION_SUM", second), 1u);
    EXPECT_EQ(num_steps("FUNCTION_ARGMAX", second), 1u);
  }
}

TEST(PlanProgram, ReductionsOfSharedResultsAreNotFused) {
  const std::string inputs = "inputs { handle: 1 } inputs { handle: 2 } ";
  const std::string sum = Binary("add", 1, 2, 3) + Reduce("FUNCTION_SUM", 3, 4);
  const std::vector<ArrayInfo> arrays = {kVector, kVector};
  EXPECT_EQ(Planned(inputs + "outputs: 3 outputs: 4 " + sum, arrays).steps.size(), 2u);
  EXPECT_EQ(Planned(inputs + "outputs: 4 outputs: 5 " + sum + Reduce("FUNCTION_MAX", 3, 5), arrays)
                .steps.size(),
            3u);
  EXPECT_EQ(Planned(inputs + "outputs: 4 " + Binary("add", 1, 2, 3) +
                        "operations { reduction { function: FUNCTION_SUM input { handle: 3 } "
                        "where { handle: 2 } } outputs { handle: 4 } } ",
                    {kVector, Contiguous(DType::kBool, {100})})
                .steps.size(),
            2u);
}

TEST(PlanProgram, InPlaceWritesKeepTheirOrder) {
  // 3 is read by 4 before the next write.
  const ProgramPlan plan = Planned(
      "inputs { handle: 1 } outputs: 5 " + Unary("cos", 1, 3) + Unary("sin", 3, 4) +
          "operations { copy { input { handle: 1 } } outputs { handle: 3 existing: true } } " +
          Binary("add", 3, 4, 5),
      {kVector});
  EXPECT_EQ(plan.steps.size(), 4u);
}

TEST(PlanProgram, FusionKeepsEveryCast) {
  // The intermediate float16 rounds.
  const ProgramPlan plan =
      Planned("inputs { handle: 1 } outputs: 3 " + Unary("cos", 1, 2) + Unary("sin", 2, 3),
              {Contiguous(DType::kFloat16, {8})});
  ASSERT_EQ(plan.steps.size(), 1u);
  int halves = 0;
  for (const auto& instruction : plan.steps[0].plan->code->elementwise().program().instructions()) {
    halves += instruction.kind() == wire::Instruction::KIND_CAST &&
              instruction.dtype() == static_cast<int>(DType::kFloat16);
  }
  EXPECT_EQ(halves, 2);
}

TEST(PlanProgram, ErrorNamesFieldOfOperation) {
  const v1::Program program =
      ProgramOf("inputs { handle: 1 } outputs: 3 " + Unary("cos", 1, 2) + Unary("gcd", 2, 3));
  const absl::Status status = PlanProgram(program, {kVector}, nullptr).status();
  EXPECT_EQ(FieldOf(status), "operations[1].ufunc.inputs") << status;
  EXPECT_EQ(FieldOf(PlanProgram(program, {}, nullptr).status()), "inputs");
}

using Extents = std::vector<int64_t>;

constexpr char kTwoInputs[] = "inputs { handle: 1 } inputs { handle: 2 } ";

// The shape of the only result for inputs of these shapes.
Extents BatchedShape(const std::string& text, const std::vector<Extents>& shapes,
                     DType second = DType::kFloat32) {
  std::vector<ArrayInfo> inputs;
  for (const Extents& shape : shapes)
    inputs.push_back(Contiguous(inputs.size() == 1 ? second : DType::kFloat32, shape));
  const ProgramPlan plan = Planned(text, inputs);
  return plan.outputs.empty() ? Extents{-1} : plan.outputs[0].shape;
}

TEST(BatchProgram, BatchedElementwiseBroadcastsPerElement) {
  const std::string add = std::string(kTwoInputs) + "outputs: 3 " + Binary("add", 1, 2, 3);
  // A vector per element with one matrix; then with a matrix per element.
  EXPECT_EQ(BatchedShape(add + "batching { inputs { axis: 0 } inputs {} }", {{10, 5}, {4, 5}}),
            (Extents{10, 4, 5}));
  EXPECT_EQ(BatchedShape(add + "batching { inputs { axis: 1 } inputs { axis: 2 } outputs: -1 }",
                         {{5, 10}, {4, 5, 10}}),
            (Extents{4, 5, 10}));
  EXPECT_EQ(
      BatchedShape(add + "batching { inputs {} inputs { axis: 0 } outputs: 1 }", {{4, 5}, {10}}),
      (Extents{4, 10, 5}));
}

TEST(BatchProgram, EachKindHasABatchingRule) {
  const std::string one = "inputs { handle: 1 } outputs: 3 batching { inputs { axis: 0 } } ";
  const std::string to = " outputs { handle: 3 } } ";
  EXPECT_EQ(BatchedShape(
                one + "operations { reduction { function: FUNCTION_SUM input { handle: 1 } }" + to,
                {{10, 4, 5}}),
            (Extents{10}));
  EXPECT_EQ(BatchedShape(one +
                             "operations { reduction { function: FUNCTION_MAX input { handle: 1 } "
                             "axes: -1 keep_dims: true }" +
                             to,
                         {{10, 4, 5}}),
            (Extents{10, 4, 1}));
  EXPECT_EQ(
      BatchedShape(one +
                       "operations { accumulation { function: 'add' input { handle: 1 } axis: 0 "
                       "include_initial: true }" +
                       to,
                   {{10, 4, 5}}),
      (Extents{10, 5, 5}));
  EXPECT_EQ(
      BatchedShape(one + "operations { sort { input { handle: 1 } axis: 0 }" + to, {{10, 4, 5}}),
      (Extents{10, 4, 5}));
  EXPECT_EQ(
      BatchedShape(one +
                       "operations { view { input { handle: 1 } steps { transpose {} } steps { "
                       "slice { axis: 1 start: 2 } } steps { reshape { shape: -1 shape: 2 } } }" +
                       to,
                   {{10, 4, 1}}),
      (Extents{10, 1, 2}));
  EXPECT_EQ(BatchedShape(one +
                             "operations { view { input { handle: 1 } steps { broadcast { shape: 3 "
                             "shape: 4 } } }" +
                             to,
                         {{10, 4}}),
            (Extents{10, 3, 4}));
  EXPECT_EQ(
      BatchedShape(one +
                       "operations { reduction { function: FUNCTION_ARGMIN input { handle: 1 } "
                       "keep_dims: true }" +
                       to,
                   {{10, 4, 5}}),
      (Extents{10, 1, 1}));
  EXPECT_EQ(BatchedShape(
                one + "operations { reduction { function: FUNCTION_SUM input { handle: 1 } }" + to,
                {{10}}),
            (Extents{10}));
  EXPECT_EQ(BatchedShape(one +
                             "operations { outer { function: 'add' left { handle: 1 } right { "
                             "handle: 1 } }" +
                             to,
                         {{10, 4, 5}}),
            (Extents{10, 4, 5, 4, 5}));
  EXPECT_EQ(BatchedShape(
                one + "operations { top_k { input { handle: 1 } k: 2 } outputs { handle: 4 }" + to,
                {{10, 4, 5}}),
            (Extents{10, 4, 2}));
  EXPECT_EQ(BatchedShape(one + "operations { partition { input { handle: 1 } axis: 0 kth: 2 }" + to,
                         {{10, 4, 5}}),
            (Extents{10, 4, 5}));
  // Ranks shared by all, ranks per element of the batch, and ranks per element for one input.
  const std::string select = std::string(kTwoInputs) +
                             "outputs: 3 operations { select { input { handle: 1 } ranks { "
                             "handle: 2 } axis: 0 }" +
                             to;
  EXPECT_EQ(BatchedShape(select + "batching { inputs { axis: 0 } inputs {} }", {{10, 4, 5}, {3}},
                         DType::kInt64),
            (Extents{10, 3, 5}));
  EXPECT_EQ(BatchedShape(select + "batching { inputs { axis: 0 } inputs { axis: 0 } }",
                         {{10, 4, 5}, {10, 3}}, DType::kInt64),
            (Extents{10, 3, 5}));
  EXPECT_EQ(BatchedShape(select + "batching { inputs {} inputs { axis: 0 } }", {{4, 5}, {10, 3, 5}},
                         DType::kInt64),
            (Extents{10, 3, 5}));
  EXPECT_EQ(BatchedShape(std::string(kTwoInputs) +
                             "outputs: 3 operations { sort { input { handle: 1 } more_keys { "
                             "handle: 2 } indices: true }" +
                             to + "batching { inputs { axis: 0 } inputs {} }",
                         {{10, 4}, {4}}),
            (Extents{10, 4}));
  for (const char* name : {"matmul", "matvec", "vecmat"}) {
    const std::string product = std::string(kTwoInputs) +
                                "outputs: 3 operations { gufunc { function: '" + name +
                                "' inputs { handle: 1 } inputs { handle: 2 } }" + to;
    const bool first_vector = name[0] == 'v', second_vector = name[3] == 'v';
    EXPECT_EQ(BatchedShape(product + "batching { inputs { axis: 0 } inputs { axis: 0 } }",
                           {first_vector ? Extents{10, 4} : Extents{10, 3, 4},
                            second_vector ? Extents{10, 4} : Extents{10, 4, 5}}),
              first_vector    ? (Extents{10, 5})
              : second_vector ? (Extents{10, 3})
                              : (Extents{10, 3, 5}));
  }
  // A vector replaces a matrix, for each element of the batch.
  const std::string matmul =
      std::string(kTwoInputs) +
      "outputs: 3 operations { gufunc { function: 'matmul' inputs { handle: 1 } "
      "inputs { handle: 2 } }" +
      to;
  EXPECT_EQ(BatchedShape(matmul + "batching { inputs { axis: 0 } inputs {} }", {{10, 4}, {4, 5}}),
            (Extents{10, 5}));
  EXPECT_EQ(BatchedShape(matmul + "batching { inputs { axis: 0 } inputs { axis: 0 } }",
                         {{10, 4}, {10, 4}}),
            (Extents{10}));
  // Results independent of the batch are repeated.
  EXPECT_EQ(
      BatchedShape(one + "operations { creation { range { stop { int_value: 7 } } }" + to, {{10}}),
      (Extents{10, 7}));
}

TEST(BatchProgram, ProductsOfMatricesAndVectors) {
  auto product = [](const std::string& batching, Extents left, Extents right) {
    return BatchedShape(
        std::string(kTwoInputs) +
            "outputs: 3 operations { matmul { left { handle: 1 } right { handle: 2 } } "
            "outputs { handle: 3 } } batching { " +
            batching + " }",
        {std::move(left), std::move(right)});
  };
  // JAX's first example: one matrix, a batch of vectors.
  EXPECT_EQ(product("inputs {} inputs { axis: 0 }", {150, 100}, {10, 100}), (Extents{10, 150}));
  EXPECT_EQ(product("inputs {} inputs { axis: 1 } outputs: 1", {150, 100}, {100, 10}),
            (Extents{150, 10}));
  EXPECT_EQ(product("inputs { axis: 0 } inputs { axis: 0 }", {10, 100}, {10, 100}), (Extents{10}));
  EXPECT_EQ(product("inputs { axis: 0 } inputs {}", {10, 3}, {6, 3, 4}), (Extents{10, 6, 4}));
  EXPECT_EQ(product("inputs { axis: 0 } inputs { axis: 0 }", {10, 2, 3}, {10, 6, 3, 4}),
            (Extents{10, 6, 2, 4}));
}

TEST(BatchProgram, SortsByKeysOfWhichTheFirstIsShared) {
  const std::string sort = std::string(kTwoInputs) +
                           "outputs: 3 operations { sort { input { handle: 1 } more_keys { "
                           "handle: 2 } axis: 0 indices: true } outputs { handle: 3 } }";
  EXPECT_EQ(BatchedShape(sort + "batching { inputs {} inputs { axis: 0 } }", {{4}, {10, 4}}),
            (Extents{10, 4}));
}

TEST(BatchProgram, LinearAlgebraOfMatricesAndVectors) {
  const auto solve = [](const std::string& batching, Extents left, Extents right) {
    return BatchedShape(
        std::string(kTwoInputs) +
            "outputs: 3 operations { linalg { function: FUNCTION_SOLVE operands { handle: 1 } "
            "operands { handle: 2 } } outputs { handle: 3 } } batching { " +
            batching + " }",
        {std::move(left), std::move(right)});
  };
  const std::string both = "inputs { axis: 0 } inputs { axis: 0 }";
  EXPECT_EQ(solve(both, {10, 3, 3}, {10, 3}), (Extents{10, 3}));
  EXPECT_EQ(solve(both, {10, 3, 3}, {10, 3, 2}), (Extents{10, 3, 2}));
  EXPECT_EQ(solve(both, {10, 3, 3}, {10, 7, 3, 2}), (Extents{10, 7, 3, 2}));
  // As many vectors as equations: not one matrix.
  EXPECT_EQ(solve("inputs {} inputs { axis: 0 }", {3, 3}, {3, 3}), (Extents{3, 3}));
  EXPECT_EQ(solve("inputs {} inputs { axis: 0 }", {7, 3, 3}, {10, 3}), (Extents{10, 7, 3}));
  EXPECT_EQ(solve("inputs { axis: 0 } inputs {}", {10, 3, 3}, {3}), (Extents{10, 3}));
  EXPECT_EQ(BatchedShape("inputs { handle: 1 } outputs: 3 operations { linalg { function: "
                         "FUNCTION_SVD values_only: true operands { handle: 1 } } outputs { "
                         "handle: 3 } } batching { inputs { axis: 0 } }",
                         {{10, 4, 3}}),
            (Extents{10, 3}));
}

TEST(BatchProgram, TransformsLeaveTheBatch) {
  const std::string begin = "inputs { handle: 1 } outputs: 3 operations { fft { input { handle: 1 ";
  const std::string end = " } outputs { handle: 3 } } batching { inputs { axis: 0 } }";
  EXPECT_EQ(BatchedShape(begin + "} kind: KIND_REAL_TO_COMPLEX" + end, {{10, 4, 6}}),
            (Extents{10, 4, 4}));
  EXPECT_EQ(BatchedShape(begin + "} kind: KIND_REAL_TO_COMPLEX axes: 0" + end, {{10, 4, 6}}),
            (Extents{10, 3, 6}));
}

TEST(BatchProgram, WritesIntoTargetsOfMoreAxes) {
  const std::string copy = "operations { copy { input { handle: 1 } } outputs { handle: 3 } } ";
  // One row for all rows of the target, which each element of the batch has.
  EXPECT_EQ(BatchedShape(std::string(kTwoInputs) + "outputs: 3 " +
                             "operations { copy { input { handle: 2 } } outputs { handle: 3 } } "
                             "operations { copy { input { handle: 1 } } outputs { handle: 3 "
                             "existing: true } } batching { inputs { axis: 0 } inputs {} }",
                         {{10, 5}, {4, 5}}),
            (Extents{10, 4, 5}));
  EXPECT_EQ(BatchedShape(std::string(kTwoInputs) + "outputs: 3 " + copy +
                             "operations { scatter { values { handle: 1 } indices { handle: 2 } "
                             "axis: 0 along_axis: true } outputs { handle: 3 existing: true } } "
                             "batching { inputs { axis: 0 } inputs {} }",
                         {{10, 4, 5}, {4, 5}}, DType::kInt64),
            (Extents{10, 4, 5}));
}

// One launch or loop for the whole batch, where its operands have no axis of it.
TEST(BatchProgram, KernelsAndLoopsOfSharedArraysStayAsTheyAre) {
  const std::string launch =
      "operations { kernel_launch { source: 'k' entry: 'k' grid { x: 1 } block { x: 1 } arguments "
      "{ "
      "new_array { spec { data_type: DATA_TYPE_FLOAT32 shape: 4 } output { handle: 5 } } } } } ";
  const std::string add = "outputs: 3 " + Binary("add", 1, 5, 3);
  EXPECT_EQ(BatchedShape("inputs { handle: 1 } " + launch + add + "batching { inputs { axis: 0 } }",
                         {{10, 4}}),
            (Extents{10, 4}));
  const std::string loop =
      "operations { loop { count: 2 carried { handle: 2 } body { inputs: 1 outputs: 2 operations { "
      "ufunc { function: 'negative' inputs { handle: 1 } } outputs { handle: 2 } } } } outputs { "
      "handle: 5 } } ";
  EXPECT_EQ(BatchedShape(
                std::string(kTwoInputs) + loop + add + "batching { inputs { axis: 0 } inputs {} }",
                {{10, 4}, {4}}),
            (Extents{10, 4}));
}

TEST(BatchProgram, RefusesOperationsThatOneElementCannotHave) {
  const auto status = [](const std::string& operation) {
    const std::string text = std::string(kTwoInputs) + "outputs: 3 operations { copy { input { " +
                             "handle: 1 } } outputs { handle: 3 } } operations { " + operation +
                             " } batching { inputs { axis: 0 } inputs { axis: 0 } }";
    const v1::Program program = ProgramOf(text);
    if (absl::Status checked = CheckProgram(program); !checked.ok()) return checked;
    const ArrayInfo floats = Contiguous(DType::kFloat32, {10, 4, 5});
    return PlanProgram(program, {floats, Contiguous(DType::kInt64, {10, 3})}, nullptr).status();
  };
  for (const char* operation : {
           "view { input { handle: 1 } steps { transpose {} } }",
           "gather { input { handle: 1 } indices { handle: 2 } axis: 1 }",
           "gather { input { handle: 1 } axis: 1 along_axis: true } outputs { handle: 4 }",
           "scatter { values { handle: 1 } indices { handle: 2 } } outputs { handle: 4 }",
           "scatter { values { handle: 1 } axis: 1 along_axis: true } outputs { handle: 3 "
           "existing: true }",
           "linalg { function: FUNCTION_SOLVE operands { handle: 1 } } outputs { handle: 4 }",
           "fft { input { handle: 1 } }",
           "matmul { left { handle: 1 } right { handle: 1 } }",
       }) {
    EXPECT_EQ(status(operation).code(), absl::StatusCode::kInvalidArgument)
        << operation << ": " << status(operation);
  }
}

TEST(BatchProgram, RefusesWithTheOperationOrField) {
  auto status = [](const std::string& text, const std::vector<Extents>& shapes) {
    std::vector<ArrayInfo> inputs;
    for (const Extents& shape : shapes) inputs.push_back(Contiguous(DType::kFloat32, shape));
    return PlanProgram(ProgramOf(text), inputs, nullptr).status();
  };
  const absl::Status nonzero = status(
      "inputs { handle: 1 } outputs: 3 batching { inputs { axis: 0 } } operations { nonzero { "
      "input { "
      "handle: 1 } count: 2 } outputs { handle: 3 } }",
      {{10, 4}});
  EXPECT_TRUE(absl::IsUnimplemented(nonzero)) << nonzero;
  EXPECT_EQ(MetadataOf(nonzero, "feature"), "batching of nonzero");
  const std::string add = std::string(kTwoInputs) + "outputs: 3 " + Binary("add", 1, 2, 3);
  EXPECT_EQ(FieldOf(status(add + "batching { inputs { axis: 2 } inputs {} }", {{10, 5}, {5}})),
            "batching.inputs[0].axis");
  EXPECT_EQ(FieldOf(status(add + "batching { inputs { axis: 0 } inputs { axis: 0 } }",
                           {{10, 5}, {9, 5}})),
            "batching.inputs[1].axis");
  EXPECT_EQ(FieldOf(status(add + "batching { inputs {} inputs {} }", {{5}, {5}})),
            "batching.inputs");
  EXPECT_EQ(FieldOf(status(add + "batching { inputs { axis: 0 } inputs { axis: 0 } outputs: 2 }",
                           {{10, 5}, {10, 5}})),
            "batching.outputs[0]");
  EXPECT_EQ(FieldOf(CheckProgram(ProgramOf(add + "batching { inputs { axis: 0 } }"))),
            "batching.inputs");
}

// A loop over the input, of one axis of float32.
std::string LoopOf(const std::string& loop, const std::string& outputs) {
  return "inputs { handle: 1 } inputs { handle: 2 } " + outputs + " operations { loop { " + loop +
         " } outputs { handle: 3 } }";
}
constexpr char kAddOne[] =
    "operations { ufunc { function: 'add' inputs { handle: 1 } inputs { scalar { float_value: 1 } "
    "} "
    "} outputs { handle: 2 } } ";

absl::StatusOr<ProgramPlan> PlanOfLoop(const std::string& text) {
  const v1::Program program = ProgramOf(text);
  if (absl::Status status = CheckProgram(program); !status.ok()) return status;
  return PlanProgram(program, {Contiguous(DType::kFloat32, {4}), Contiguous(DType::kBool, {})},
                     nullptr);
}

TEST(PlanBodies, LoopCarriesStateAndStacksOutputs) {
  const std::string body = "body { inputs: 1 outputs: 2 " + std::string(kAddOne) + "}";
  auto plan = PlanOfLoop(LoopOf("carried { handle: 1 } count: 5 " + body, "outputs: 3"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->steps.size(), 1u);
  EXPECT_FALSE(plan->steps[0].plan.has_value());
  ASSERT_EQ(plan->steps[0].bodies.size(), 1u);
  EXPECT_EQ(plan->steps[0].bodies[0]->steps.size(), 1u);
  EXPECT_EQ(plan->outputs[0].shape, (Extents{4}));
  plan = PlanOfLoop(LoopOf("constants { handle: 1 } count: 5 " + body, "outputs: 3"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].shape, (Extents{5, 4}));
  plan = PlanOfLoop(LoopOf("scanned { handle: 1 } count: 4 " + body, "outputs: 3"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].shape, (Extents{4}));
}

TEST(PlanBodies, BodiesAreRefusedWithTheField) {
  auto field = [](const std::string& loop) {
    const absl::Status status = PlanOfLoop(LoopOf(loop, "outputs: 3")).status();
    EXPECT_FALSE(status.ok()) << loop;
    return FieldOf(status);
  };
  const std::string ops = kAddOne, one = "body { inputs: 1 outputs: 2 " + ops + "}";
  const std::string carried = "carried { handle: 1 } ";
  EXPECT_EQ(field(carried + one), "operations[0].loop.trips");
  EXPECT_EQ(field(carried + "count: -1 " + one), "operations[0].loop.count");
  EXPECT_EQ(field(carried + "count: 2 body { inputs: 1 outputs: 1 " + ops + "}"),
            "operations[0].loop.body.outputs[0]");
  EXPECT_EQ(field(carried + "count: 2 body { inputs: 3 outputs: 2 " + ops + "}"),
            "operations[0].loop.body.operations[0].ufunc.inputs[0].handle");
  EXPECT_EQ(field(carried + carried + "count: 2 " + one), "operations[0].loop.body.inputs");
  EXPECT_EQ(field(carried + "condition { handle: 1 } " + one), "operations[0].loop.condition");
  EXPECT_EQ(field(carried + "condition { handle: 2 } " + one), "operations[0].loop.body.outputs");
  EXPECT_EQ(field("scanned { handle: 1 } count: 5 " + one), "operations[0].loop.scanned[0]");
  EXPECT_EQ(field("scanned { handle: 1 } condition { handle: 2 } " + one),
            "operations[0].loop.scanned");
  // Another type than before the iteration.
  const std::string wide =
      "body { inputs: 1 outputs: 2 operations { copy { input { handle: 1 } data_type: "
      "DATA_TYPE_FLOAT64 } outputs { handle: 2 } } }";
  EXPECT_EQ(field(carried + "count: 2 " + wide), "operations[0].loop.body.outputs[0]");
  EXPECT_EQ(field(carried + "count: 2 body { inputs: 1 outputs: 2 operations { program_call { "
                            "program: 'p' } outputs { handle: 2 } } }"),
            "");
  // Nesting beyond the depth limit.
  std::string deep = one;
  for (int i = 0; i < kMaxBodyDepth; ++i) {
    deep = "body { inputs: 1 outputs: 2 operations { loop { carried { handle: 1 } count: 1 " +
           deep + " } outputs { handle: 2 } } }";
  }
  const absl::Status status =
      PlanOfLoop(LoopOf(carried + "count: 1 " + deep, "outputs: 3")).status();
  EXPECT_NE(FieldOf(status).find("loop"), std::string::npos) << status;
}

TEST(PlanBodies, BranchBodiesMustHaveEqualResults) {
  auto branch = [](const std::string& index, const std::string& second) {
    return PlanOfLoop(
        "inputs { handle: 1 } inputs { handle: 2 } outputs: 3 operations { branch { index { " +
        index + " } inputs { handle: 1 } bodies { inputs: 1 outputs: 2 " + kAddOne +
        "} bodies { inputs: 1 outputs: 2 " + second + "} } outputs { handle: 3 } }");
  };
  auto plan = branch("handle: 2", kAddOne);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps[0].bodies.size(), 2u);
  EXPECT_EQ(FieldOf(branch("handle: 1", kAddOne).status()), "operations[0].branch.index");
  EXPECT_EQ(FieldOf(branch("handle: 2",
                           "operations { reduction { function: FUNCTION_SUM input { handle: 1 } } "
                           "outputs { handle: 2 } } ")
                        .status()),
            "operations[0].branch.bodies[1].outputs[0]");
}

}  // namespace
}  // namespace stride::ops
