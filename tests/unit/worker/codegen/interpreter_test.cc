// The kernel that runs programs by blocks on a GPU, compiled for this processor with one thread per
// block. Its results equal those of fused loops bit for bit.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/ops/block_loops.h"
#include "server/worker/codegen/block_launch.h"
#include "server/worker/codegen/emit.h"
#include "tests/support/plan_helpers.h"
#include "tests/support/random_expressions.h"
#include "tests/unit/worker/codegen/native_modules.h"

namespace stride::codegen {
namespace {

constexpr int kMultiprocessors = 2;

using Interpreter = void (*)(const void* launch, char* slots, long long start, long long skip);
using Fused = void (*)(const void* launch, long long begin, long long end);

std::vector<uint64_t> AddressesOf(const wire::ElementwiseLaunch& launch,
                                  std::vector<testing::RandomArray>& arrays, std::string& result) {
  std::vector<uint64_t> addresses;
  for (const wire::Operand& input : launch.inputs()) {
    addresses.push_back(reinterpret_cast<uint64_t>(arrays[input.arena()].buffer.data()) +
                        input.offset());
  }
  addresses.push_back(reinterpret_cast<uint64_t>(result.data()));
  return addresses;
}

wire::ElementwiseLaunch LaunchByBlocks(const ops::Plan& plan) {
  wire::ElementwiseLaunch launch = plan.task.elementwise();
  *launch.mutable_by_blocks() = plan.code->elementwise().program();
  return launch;
}

absl::StatusOr<BlocksLaunch> Pack(const wire::ElementwiseLaunch& launch,
                                  const std::vector<uint64_t>& addresses) {
  auto steps = PlanBlockSteps(launch);
  if (!steps.ok()) return steps.status();
  return PackBlocks(*steps, addresses, kMultiprocessors);
}

TEST(InterpreterTest, RandomExpressionsAreBitIdenticalToFusedLoops) {
  constexpr int kExpressions = 120;
  testing::RandomExpressions random(48);
  std::vector<testing::RandomExpression> expressions;
  std::vector<ops::Plan> plans;
  std::vector<std::string> texts = {EmitInterpreter(Target::kCpu)};
  for (int i = 0; i < kExpressions; ++i) {
    expressions.push_back(random.Next());
    plans.push_back(ops::testing::Good(expressions.back().operation, expressions.back().Inputs()));
    texts.push_back(*EmitElementwiseCpu(plans.back().code->elementwise()));
  }
  auto modules = testing::NativeModules::Compile(texts);
  ASSERT_TRUE(modules.ok()) << modules.status();
  auto* const interpreter = reinterpret_cast<Interpreter>(modules->Find(0, ops::kBlocksEntry));
  ASSERT_NE(interpreter, nullptr);
  for (int i = 0; i < kExpressions; ++i) {
    const auto bytes = static_cast<size_t>(plans[i].outputs[0].size_bytes());
    std::string expected(bytes, '\x11'), got(bytes, '\x22');
    const wire::ElementwiseLaunch launch = LaunchByBlocks(plans[i]);
    const LaunchBlock block =
        PackElementwise(launch, AddressesOf(launch, expressions[i].arrays, expected));
    auto packed = Pack(launch, AddressesOf(launch, expressions[i].arrays, got));
    ASSERT_TRUE(packed.ok()) << packed.status();
    auto* const fused = reinterpret_cast<Fused>(modules->Find(i + 1, kRunEntry));
    ASSERT_NE(fused, nullptr);
    fused(block.data(), 0, plans[i].outputs[0].num_elements());
    std::vector<uint64_t> slots(packed->shape.shared_bytes / sizeof(uint64_t) + 2);
    for (uint32_t start = 0; start < packed->shape.grid[0]; ++start) {
      interpreter(packed->block.data(), reinterpret_cast<char*>(slots.data()), start,
                  packed->shape.grid[0]);
    }
    ASSERT_EQ(testing::FirstDifference(plans[i].outputs[0].dtype, expected, got), -1)
        << expressions[i].text << " number " << i;
  }
}

// The scheduler requests no more than that.
TEST(InterpreterTest, LaunchFitsTheDeclaredLimits) {
  const auto bytes_of = [](const std::string& text, DType dtype) {
    const ops::Plan plan = ops::testing::Good(ops::testing::ExpressionOf(text, {"a"}),
                                              {ops::testing::Array(dtype, {5000})});
    const wire::ElementwiseLaunch launch = LaunchByBlocks(plan);
    const auto packed = Pack(launch, {256, 512});
    const int64_t bytes = ops::BlockLaunchBytes(launch.by_blocks(), 2, launch.extents_size());
    EXPECT_TRUE(packed.ok() || bytes > kBlocksBytes) << bytes << " " << packed.status();
    if (packed.ok()) {
      EXPECT_EQ(packed->block.size() * sizeof(uint64_t), size_t{kBlocksBytes});
      EXPECT_LE(packed->shape.shared_bytes, 48u << 10);
      EXPECT_GE(packed->shape.block[0], 32u);
    }
    return bytes;
  };
  // Values that are all needed at the end, then an increasing number of steps.
  std::string text = "a";
  for (int i = 1; i < 40; ++i) text = absl::StrCat("(a * ", i, " + a) - (", text, ")");
  bool some_too_large = false;
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&text, " + a * ", i);
    if (i % 9 == 0) some_too_large |= bytes_of(text, DType::kComplex128) > kBlocksBytes;
  }
  EXPECT_TRUE(some_too_large);
}

// Every block has its own part of the output, whatever its number of threads.
TEST(InterpreterTest, ShapesCoverAllElements) {
  for (int64_t n : {int64_t{1}, int64_t{255}, int64_t{4096}, int64_t{4097}, int64_t{1} << 33}) {
    const ops::Plan plan = ops::testing::Good(ops::testing::ExpressionOf("a + 1", {"a"}),
                                              {ops::testing::Array(DType::kInt8, {n})});
    const auto packed = Pack(LaunchByBlocks(plan), {256, 512});
    ASSERT_TRUE(packed.ok()) << packed.status();
    int64_t count = 0;
    int32_t block = 0;
    std::memcpy(&count, packed->block.data(), sizeof(count));
    std::memcpy(&block, packed->block.data() + 1, sizeof(block));
    EXPECT_EQ(count, n);
    EXPECT_EQ(packed->shape.grid[0], static_cast<uint32_t>(std::min<int64_t>(
                                         (n + block - 1) / block, kMultiprocessors * 8)));
  }
}

}  // namespace
}  // namespace stride::codegen
