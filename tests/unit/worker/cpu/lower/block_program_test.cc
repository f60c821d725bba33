// Both tiers of elementwise code: the results of block loops equal those of fused loops bit for
// bit.
#include "server/worker/cpu/lower/block_program.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/base/memory_file.h"
#include "server/ops/op_table.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/cpu/code_compiler.h"
#include "server/worker/cpu/lower/loaded_module.h"
#include "server/worker/cpu/lower/scratch.h"
#include "tests/support/cases.h"
#include "tests/support/plan_helpers.h"
#include "tests/support/random_expressions.h"

namespace stride::cpu {
namespace {

using ops::Plan;

std::shared_ptr<const LoadedModule> Load(const wire::Code& code, const std::string& target) {
  CpuCompiler compiler;
  auto compiled = compiler.Compile(target, code);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return nullptr;
  auto file = CreateSealedCopy("module", compiled->object);
  auto module = LoadedModule::Load(file->get(), compiled->description);
  EXPECT_TRUE(module.ok()) << module.status();
  return *module;
}

// For the most portable processor that runs here, as in the released package.
const LoadedModule& BlockLoopsModule() {
  static const std::shared_ptr<const LoadedModule>& module = *[] {
    wire::Code code;
    code.mutable_block_loops();
    const std::vector<std::string> portable = PortableTargets();
    return new std::shared_ptr<const LoadedModule>(
        Load(code, portable.empty() ? *NativeTarget() : portable.back()));
  }();
  return *module;
}

std::vector<uint64_t> AddressesOf(const wire::ElementwiseLaunch& launch,
                                  const std::vector<char*>& buffers) {
  std::vector<uint64_t> addresses;
  for (const auto* operands : {&launch.inputs(), &launch.outputs()}) {
    for (const wire::Operand& operand : *operands) {
      addresses.push_back(reinterpret_cast<uint64_t>(buffers[operand.arena()] +
                                                     static_cast<int64_t>(operand.offset())));
    }
  }
  return addresses;
}

int64_t CountOf(const wire::ElementwiseLaunch& launch) {
  int64_t count = 1;
  for (int64_t extent : launch.extents()) count *= extent;
  return count;
}

// In two ranges, as two threads would run it.
void RunByBlocks(const Plan& plan, const std::vector<char*>& buffers) {
  wire::ElementwiseLaunch launch = plan.task.elementwise();
  *launch.mutable_by_blocks() = plan.code->elementwise().program();
  auto program = BlockProgram::Create(launch, BlockLoopsModule());
  ASSERT_TRUE(program.ok()) << program.status();
  const std::vector<uint64_t> addresses = AddressesOf(launch, buffers);
  const int64_t count = CountOf(launch), middle = count / 3;
  ScratchMemory scratch = AllocateScratch((*program)->scratch_bytes() + 1);
  (*program)->Run(addresses, 0, middle, scratch.get());
  (*program)->Run(addresses, middle, count, scratch.get());
}

void RunFused(const Plan& plan, const std::vector<char*>& buffers) {
  auto module = Load(*plan.code, *NativeTarget());
  ASSERT_NE(module, nullptr);
  const auto& launch = plan.task.elementwise();
  const codegen::LaunchBlock block = codegen::PackElementwise(launch, AddressesOf(launch, buffers));
  module->FindLoop(codegen::kRunEntry)(block.data(), 0, CountOf(launch));
}

TEST(BlockProgramTest, UfuncCases) {
  auto cases = testing::ReadCases(STRIDE_CASES "/ufunc.case");
  ASSERT_TRUE(cases.ok()) << cases.status();
  int failures = 0;
  for (testing::OpCase& op_case : *cases) {
    std::vector<ops::Input> inputs;
    std::vector<char*> buffers;
    for (auto& column : op_case.inputs) {
      inputs.push_back(Contiguous(column.dtype, {op_case.count}));
      buffers.push_back(column.bytes.data());
    }
    auto plan = ops::PlanOperation(
        ops::testing::UfuncOf(op_case.op, static_cast<int>(inputs.size())), inputs, {});
    ASSERT_TRUE(plan.ok()) << plan.status() << " line " << op_case.line;
    std::string output(op_case.expected.bytes.size(), '\xAB');
    buffers.push_back(output.data());
    RunByBlocks(*plan, buffers);
    const std::string wrong = testing::Differences(op_case, output);
    if (!wrong.empty() && ++failures <= 20) ADD_FAILURE() << wrong;
  }
  EXPECT_EQ(failures, 0);
}

TEST(BlockProgramTest, RandomExpressionsEqualFusedLoops) {
  testing::RandomExpressions random(41);
  for (int i = 0; i < 120; ++i) {
    testing::RandomExpression expression = random.Next();
    auto plan = ops::PlanOperation(expression.operation, expression.Inputs(), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const ArrayInfo& output = plan->outputs[0];
    std::string fused(static_cast<size_t>(output.size_bytes()), '\x11');
    std::string blocks(fused.size(), '\x22');
    std::vector<char*> buffers;
    for (testing::RandomArray& array : expression.arrays) buffers.push_back(array.buffer.data());
    buffers.push_back(fused.data());
    RunFused(*plan, buffers);
    buffers.back() = blocks.data();
    RunByBlocks(*plan, buffers);
    ASSERT_EQ(testing::FirstDifference(output.dtype, fused, blocks), -1)
        << expression.text << " number " << i << " of " << Name(output.dtype);
  }
}

TEST(BlockProgramTest, OutputMayBeAnInput) {
  ArrayInfo info = Contiguous(DType::kFloat64, {5000});
  std::vector<double> values(5000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  v1::Operation operation = ops::testing::ExpressionOf("sqrt(a) + a * a", {"a"});
  operation.mutable_outputs(0)->set_existing(true);
  auto plan = ops::PlanOperation(operation, {info}, {info});
  ASSERT_TRUE(plan.ok()) << plan.status();
  char* const buffer = reinterpret_cast<char*>(values.data());
  RunByBlocks(*plan, {buffer, buffer});
  for (size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(i);
    ASSERT_EQ(values[i], std::sqrt(x) + x * x) << i;
  }
}

// A worker checks its programs, although the daemon sends none of these.
TEST(BlockProgramTest, BrokenProgramsAreRefused) {
  auto plan = ops::PlanOperation(ops::testing::ExpressionOf("a * 3 - a", {"a"}),
                                 {ops::Input(Contiguous(DType::kInt32, {4}))}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  wire::ElementwiseLaunch good = plan->task.elementwise();
  *good.mutable_by_blocks() = plan->code->elementwise().program();
  ASSERT_TRUE(BlockProgram::Create(good, BlockLoopsModule()).ok());
  const auto refused = [&](auto change) {
    wire::ElementwiseLaunch launch = good;
    change(&launch);
    return absl::IsInternal(BlockProgram::Create(launch, BlockLoopsModule()).status());
  };
  using Launch = wire::ElementwiseLaunch;
  EXPECT_TRUE(refused([](Launch* launch) { launch->clear_extents(); }));
  EXPECT_TRUE(refused([](Launch* launch) { launch->clear_inputs(); }));
  EXPECT_TRUE(refused([](Launch* launch) { launch->clear_outputs(); }));
  EXPECT_TRUE(refused([](Launch* launch) { launch->clear_scalars(); }));
  EXPECT_TRUE(refused([](Launch* launch) { launch->mutable_inputs(0)->set_dtype(99); }));
  EXPECT_TRUE(refused([](Launch* launch) { launch->mutable_outputs(0)->set_dtype(13); }));
  EXPECT_TRUE(refused([](Launch* launch) { launch->mutable_inputs(0)->add_strides(1); }));
  for (int i = 0; i < good.by_blocks().instructions_size(); ++i) {
    EXPECT_TRUE(refused([&](Launch* launch) {
      launch->mutable_by_blocks()->mutable_instructions(i)->set_dtype(0);
    }));
    EXPECT_TRUE(refused([&](Launch* launch) {
      auto* instruction = launch->mutable_by_blocks()->mutable_instructions(i);
      instruction->add_arguments(99);
      instruction->set_index(99);
    }));
  }
  EXPECT_TRUE(refused([](Launch* launch) { launch->mutable_by_blocks()->set_results(0, 99); }));
}

}  // namespace
}  // namespace stride::cpu
