// Programs with a batch: the rule of each kind, and refusals.

#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/program_plan.h"
#include "tests/support/plan_helpers.h"
#include "tests/support/program_text.h"

namespace stride::ops {
namespace {

using testing::Binary;
using testing::FieldOf;
using testing::Planned;
using testing::ProgramOf;
using testing::Unary;

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

TEST(BatchProgram, RefusesHandleWithoutRoomAbove) {
  auto status = [](uint64_t input, uint64_t output) {
    v1::Program program = ProgramOf("inputs { handle: 1 } outputs: 2 " + Unary("cos", 1, 2) +
                                    "batching { inputs { axis: 1 } outputs: 1 }");
    program.mutable_inputs(0)->set_handle(input);
    v1::Operation* operation = program.mutable_operations(0);
    operation->mutable_ufunc()->mutable_inputs(0)->set_handle(input);
    operation->mutable_outputs(0)->set_handle(output);
    program.set_outputs(0, output);
    return PlanProgram(program, {Contiguous(DType::kFloat32, {10, 4})}, nullptr).status();
  };
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  constexpr uint64_t kGreatest = kLast - (uint64_t{1} << 32);
  EXPECT_TRUE(status(kGreatest, kGreatest - 1).ok()) << status(kGreatest, kGreatest - 1);
  for (const uint64_t handle : {kGreatest + 1, kLast - 1, kLast}) {
    const absl::Status of_input = status(handle, 2), of_output = status(1, handle);
    EXPECT_TRUE(absl::IsInvalidArgument(of_input)) << of_input;
    EXPECT_EQ(FieldOf(of_input), "inputs[0].handle");
    EXPECT_TRUE(absl::IsInvalidArgument(of_output)) << of_output;
    EXPECT_EQ(FieldOf(of_output), "operations[0].outputs[0]");
  }
}

}  // namespace
}  // namespace stride::ops
