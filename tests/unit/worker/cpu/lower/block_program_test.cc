// Both tiers of elementwise code: the block loops' results equal the fused loop's, to the bit.
#include "server/worker/cpu/lower/block_program.h"

#include <cmath>
#include <cstring>
#include <random>

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

// For the most portable processor that runs here: what the product brings.
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

// In two ranges, as two threads would.
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

// A view somewhere in a buffer of its own, with axes in any order, reversed, repeated, with gaps.
struct TestArray {
  ArrayInfo info;
  std::vector<char> buffer;
};

using Random = std::mt19937;

double AnyNumber(Random& random) {
  switch (random() % 12) {
    case 0:
      return 0.0;
    case 1:
      return -0.0;
    case 2:
      return INFINITY;
    case 3:
      return NAN;
    case 4:
      return 1e300;
    case 5:
      return 3e-310;
    default:
      return std::ldexp(static_cast<double>(random()) / 4294967296.0 - 0.5,
                        static_cast<int>(random() % 12));
  }
}

void FillElement(DType dtype, Random& random, char* element) {
  if (dtype == DType::kFloat64 || dtype == DType::kComplex128) {
    for (int64_t i = 0; i < ItemSize(dtype); i += 8) {
      const double value = AnyNumber(random);
      std::memcpy(element + i, &value, 8);
    }
  } else if (dtype == DType::kFloat32 || dtype == DType::kComplex64) {
    for (int64_t i = 0; i < ItemSize(dtype); i += 4) {
      const auto value = static_cast<float>(AnyNumber(random));
      std::memcpy(element + i, &value, 4);
    }
  } else {
    // Any bits; of a bool too, whose byte may be any. Small integers are as likely as large ones.
    for (int64_t i = 0; i < ItemSize(dtype); ++i) element[i] = static_cast<char>(random());
    if (IsInteger(dtype) && random() % 2 == 0) std::memset(element + 1, 0, ItemSize(dtype) - 1);
  }
}

TestArray RandomView(DType dtype, const std::vector<int64_t>& shape, Random& random) {
  TestArray array;
  array.info.dtype = dtype;
  array.info.shape = shape;
  array.info.strides.resize(shape.size());
  std::vector<size_t> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const bool plain = random() % 2 == 0;
  if (!plain) std::shuffle(order.begin(), order.end(), random);
  const int64_t item = ItemSize(dtype);
  int64_t stride = item * (plain || random() % 3 != 0 ? 1 : 2), lowest = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t axis = order[i];
    const int kind = plain ? 2 : static_cast<int>(random() % 6);
    array.info.strides[axis] = kind == 0 ? -stride : kind == 1 ? 0 : stride;
    if (kind == 0) lowest -= stride * (std::max<int64_t>(shape[axis], 1) - 1);
    if (kind != 1) stride *= std::max<int64_t>(shape[axis], 1);
  }
  array.info.offset = -lowest;
  array.buffer.resize(static_cast<size_t>(stride - lowest + item * 2));
  for (size_t at = 0; at + static_cast<size_t>(item) <= array.buffer.size();
       at += static_cast<size_t>(item))
    FillElement(dtype, random, array.buffer.data() + at);
  return array;
}

// Operations that take any number, joined at random, over a, b, c and constants.
std::string RandomText(Random& random, int depth) {
  static constexpr const char* kLeaves[] = {"a", "b", "c", "a", "b", "c", "2", "0.5", "3"};
  static constexpr const char* kUnary[] = {"-%",        "abs(%)",   "exp(%)",         "sin(%)",
                                           "cos(%)",    "sqrt(%)",  "log1p(%)",       "tanh(%)",
                                           "square(%)", "isnan(%)", "logical_not(%)", "sign(%)"};
  static constexpr const char* kBinary[] = {
      "(% + %)",       "(% - %)",     "(% * %)",    "(% / %)",    "maximum(%, %)",
      "minimum(%, %)", "(% < %)",     "(% == %)",   "(% >= %)",   "where(%, %, %)",
      "(% ** 3)",      "power(%, %)", "fmax(%, %)", "(% * % + %)"};
  if (depth == 0) return kLeaves[random() % std::size(kLeaves)];
  const bool unary = random() % 3 == 0;
  const std::string form =
      unary ? kUnary[random() % std::size(kUnary)] : kBinary[random() % std::size(kBinary)];
  std::string text;
  for (char letter : form) {
    if (letter == '%') {
      absl::StrAppend(&text, RandomText(random, static_cast<int>(random() % depth)));
    } else {
      text += letter;
    }
  }
  return text;
}

bool SameNumber(DType dtype, const char* one, const char* other) {
  const auto part_same = [&](auto number, int64_t at) {
    decltype(number) x, y;
    std::memcpy(&x, one + at, sizeof(x));
    std::memcpy(&y, other + at, sizeof(y));
    // Which NaN results from two is the processor's choice.
    return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof(x)) == 0;
  };
  switch (dtype) {
    case DType::kFloat32:
      return part_same(0.0F, 0);
    case DType::kComplex64:
      return part_same(0.0F, 0) && part_same(0.0F, 4);
    case DType::kFloat64:
      return part_same(0.0, 0);
    case DType::kComplex128:
      return part_same(0.0, 0) && part_same(0.0, 8);
    default:
      return std::memcmp(one, other, static_cast<size_t>(ItemSize(dtype))) == 0;
  }
}

TEST(BlockProgramTest, RandomExpressionsEqualFusedLoops) {
  constexpr DType kTypes[] = {DType::kFloat64, DType::kFloat32, DType::kInt64,     DType::kInt32,
                              DType::kBool,    DType::kUInt8,   DType::kComplex64, DType::kFloat32,
                              DType::kFloat64, DType::kInt16,   DType::kFloat64,   DType::kUInt64};
  Random random(41);
  int tried = 0;
  for (int trial = 0; trial < 400 && tried < 120; ++trial) {
    std::vector<int64_t> shape(1 + random() % 3);
    for (auto& extent : shape) extent = 1 + static_cast<int64_t>(random() % 40);
    if (random() % 4 == 0) shape = {3000};  // more than a block
    std::vector<TestArray> arrays;
    std::vector<ops::Input> inputs;
    const std::string text = RandomText(random, 3);
    std::vector<std::string> names;
    for (const char* name : {"a", "b", "c"}) {
      std::vector<int64_t> narrow = shape;
      for (auto& extent : narrow) extent = random() % 5 != 0 ? extent : 1;
      if (narrow.size() > 1 && random() % 4 == 0) narrow.erase(narrow.begin());
      arrays.push_back(RandomView(kTypes[random() % std::size(kTypes)], narrow, random));
      if (text.find(name) == std::string::npos) {
        arrays.pop_back();
        continue;
      }
      names.push_back(name);
      inputs.push_back(arrays.back().info);
    }
    auto plan = ops::PlanOperation(ops::testing::ExpressionOf(text, names), inputs, {});
    if (!plan.ok() || !plan->code.has_value()) continue;  // of types that have no such loop
    ++tried;
    const ArrayInfo& output = plan->outputs[0];
    std::string fused(static_cast<size_t>(output.size_bytes()), '\x11');
    std::string blocks(fused.size(), '\x22');
    std::vector<char*> buffers;
    for (TestArray& array : arrays) buffers.push_back(array.buffer.data());
    buffers.push_back(fused.data());
    RunFused(*plan, buffers);
    buffers.back() = blocks.data();
    RunByBlocks(*plan, buffers);
    const auto item = static_cast<size_t>(ItemSize(output.dtype));
    for (size_t at = 0; at < fused.size(); at += item) {
      ASSERT_TRUE(SameNumber(output.dtype, fused.data() + at, blocks.data() + at))
          << text << " trial " << trial << " element " << at / item << " of " << Name(output.dtype);
    }
  }
  EXPECT_GE(tried, 100);
}

TEST(BlockProgramTest, AnOutputMayBeAnInput) {
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

// A worker checks its programs, though the daemon sends none of these.
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
