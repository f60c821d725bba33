// Programs: refusals, fusion into one loop, and equality of fused loops with their operations.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/program_plan.h"
#include "tests/support/plan_helpers.h"
#include "tests/support/program_text.h"

namespace stride::ops {
namespace {

using testing::Binary;
using testing::CountOps;
using testing::FieldOf;
using testing::Planned;
using testing::ProgramOf;
using testing::Unary;
using Extents = std::vector<int64_t>;

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
