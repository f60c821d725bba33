// Reductions without compiled code of their own on a GPU: the GPU text, run by the CPU device's
// compiler of CUDA kernels. Results equal those of the reduction's own code bit for bit, however
// few values are computed at a time.
#include "server/ops/reduce_by_blocks.h"

#include <cstring>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "cpucuda/cpucuda.h"
#include "gtest/gtest.h"
#include "server/ops/block_loops.h"
#include "server/worker/codegen/block_launch.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/reduce_by_blocks_cuda.h"
#include "tests/support/plan_helpers.h"
#include "tests/unit/worker/codegen/native_modules.h"

namespace stride::codegen {
namespace {

using Code = wire::ReduceCode;
using R = v1::Reduction;
using Interpreter = void (*)(const void* launch, char* slots, long long start, long long skip);

// Few, so that a long result has several parts and all blocks of a short array are resident.
constexpr int kMultiprocessors = 1;

// 16-bit floats are converted by PTX, which these tests do without.
std::string WithoutPtx(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (line.find("  asm(\"") != 0) out += line;
    at = end;
  }
  return out;
}

// The kernels of reductions, compiled together.
class Kernels {
 public:
  // One entry for equal code.
  void Add(const Code& code) {
    if (!numbers_.emplace(code.SerializeAsString(), texts_.size()).second) return;
    auto text = EmitReduceCuda(code);
    EXPECT_TRUE(text.ok()) << text.status();
    texts_.push_back(WithoutPtx(*text));
  }

  void Compile() {
    cpucuda::CompileRequest request{.source =
                                        WithoutPtx(testing::JoinTexts(texts_, /*cuda=*/true))};
    for (size_t i = 0; i < texts_.size(); ++i)
      request.entries.push_back(absl::StrCat("text", i, "::", kReduceEntry, "_", i));
    auto result = cpucuda::Compile(request);
    ASSERT_TRUE(result.ok()) << result.status();
    module_ = *cpucuda::Module::LoadBytes(result->object);
    for (const cpucuda::CompiledKernel& kernel : result->kernels) {
      entries_.push_back({.name = kernel.name,
                          .function = module_->Symbol(kernel.symbol),
                          .static_shared_bytes = kernel.static_shared_bytes,
                          .max_threads_per_block = kernel.max_threads_per_block,
                          .private_bytes_per_thread = kernel.private_bytes_per_thread,
                          .per_thread = kernel.form == cpucuda::ThreadForm::kPerThread});
      marks_at_.push_back(kernel.parameters[1].offset);
    }
  }

  // Without an end mark.
  absl::Status Launch(const Code& code, const LaunchShape& shape, const LaunchBlock& block) const {
    const size_t number = numbers_.at(code.SerializeAsString());
    const size_t mark_at = marks_at_.at(number);
    std::string parameters(mark_at + sizeof(EndMark), '\0');
    std::memcpy(parameters.data(), block.data(),
                std::min(mark_at, block.size() * sizeof(block[0])));
    static auto* const pool = new cpucuda::ThreadPool(2);
    const cpucuda::LaunchConfig config{{shape.grid[0], shape.grid[1], 1},
                                       {shape.block[0], shape.block[1], 1}};
    return cpucuda::Launch(*pool, entries_[number], config, parameters.data(), nullptr);
  }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
  std::unique_ptr<cpucuda::Module> module_;
  std::vector<cpucuda::KernelEntry> entries_;
  std::vector<size_t> marks_at_;
};

Interpreter TheInterpreter() {
  static const Interpreter interpreter = [] {
    auto modules = testing::NativeModules::Compile({EmitInterpreter(Target::kCpu)});
    EXPECT_TRUE(modules.ok()) << modules.status();
    return reinterpret_cast<Interpreter>(modules->Find(0, ops::kBlocksEntry));
  }();
  return interpreter;
}

// The locations of a launch's operands, the output last.
std::vector<uint64_t> AddressesOf(const wire::ReduceLaunch& launch,
                                  const std::vector<const char*>& inputs,
                                  const std::string& output) {
  std::vector<uint64_t> addresses;
  for (const wire::Operand& input : launch.inputs())
    addresses.push_back(reinterpret_cast<uint64_t>(inputs[input.arena()]) + input.offset());
  addresses.push_back(reinterpret_cast<uint64_t>(output.data()) + launch.output().offset());
  return addresses;
}

std::string RunOwnCode(const Kernels& kernels, const ops::Plan& plan,
                       const std::vector<const char*>& inputs) {
  const wire::ReduceLaunch& launch = plan.task.reduce();
  std::string output(static_cast<size_t>(plan.outputs[0].size_bytes()), '\xAB');
  const ReduceShape shape = PlanReduceCuda(launch, kMultiprocessors);
  std::vector<uint64_t> scratch(shape.scratch_bytes / 8 + 2, 0xA5A5A5A5A5A5A5A5u);
  std::vector<uint32_t> arrivals(static_cast<size_t>(ReduceArrivals(kMultiprocessors)));
  const absl::Status status =
      kernels.Launch(plan.code->reduce(), shape.first,
                     PackReduce(launch, shape, AddressesOf(launch, inputs, output),
                                reinterpret_cast<uint64_t>(scratch.data()),
                                reinterpret_cast<uint64_t>(arrivals.data())));
  EXPECT_TRUE(status.ok()) << status;
  return output;
}

struct ByBlocks {
  std::string output;
  int num_launches = 0;
  uint64_t scratch_bytes = 0;
};

ByBlocks RunByBlocks(const Kernels& kernels, const ops::Plan& plan, const Code& plain,
                     const std::vector<const char*>& inputs, uint64_t value_bytes) {
  ByBlocks result;
  result.output.assign(static_cast<size_t>(plan.outputs[0].size_bytes()), '\xCD');
  wire::ReduceLaunch launch = plan.task.reduce();
  *launch.mutable_by_blocks() = ops::ReduceByBlocks(plan.code->reduce(), 1);
  const ReduceByBlocksCuda steps(launch, kMultiprocessors, value_bytes);
  result.scratch_bytes = steps.scratch_bytes();
  std::vector<uint64_t> scratch(steps.scratch_bytes() / 8 + 2, 0xA5A5A5A5A5A5A5A5u);
  std::vector<uint32_t> arrivals(static_cast<size_t>(ReduceArrivals(kMultiprocessors)));
  bool ended = false;
  const auto run = [&](BlocksStep& step) -> absl::Status {
    EXPECT_FALSE(ended);
    ended = step.last;
    ++result.num_launches;
    if (step.kind == BlocksStep::Kind::kReduce)
      return kernels.Launch(plain, step.shape, step.block);
    std::vector<uint64_t> slots(step.shape.shared_bytes / sizeof(uint64_t) + 2);
    for (uint32_t start = 0; start < step.shape.grid[0]; ++start) {
      TheInterpreter()(step.block.data(), reinterpret_cast<char*>(slots.data()), start,
                       step.shape.grid[0]);
    }
    return absl::OkStatus();
  };
  const absl::Status status = steps.ForEachStep(AddressesOf(launch, inputs, result.output),
                                                reinterpret_cast<uint64_t>(scratch.data()),
                                                reinterpret_cast<uint64_t>(arrivals.data()), run);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(ended);
  for (uint32_t counter : arrivals) EXPECT_EQ(counter, 0u);
  return result;
}

class ReduceByBlocksTest : public ::testing::Test {
 protected:
  ReduceByBlocksTest() {
    std::mt19937 random(26);
    for (float& x : floats_) x = static_cast<float>(random() % 100000) * 1e-3f - 40;
    for (double& x : doubles_) x = static_cast<double>(random() % 100000) * 1e-3 - 40;
  }

  std::vector<const char*> Inputs() const {
    return {reinterpret_cast<const char*>(floats_.data()),
            reinterpret_cast<const char*>(doubles_.data())};
  }

  void Add(const ops::Plan& plan) {
    ASSERT_TRUE(plan.code.has_value());
    const auto plain = ops::PlainReduceCode(plan.code->reduce(), ops::Runs::kNone);
    ASSERT_TRUE(plain.has_value());
    kernels_.Add(plan.code->reduce());
    kernels_.Add(plain->reduce());
    trials_.push_back({plan, plain->reduce()});
  }

  // All with their own code, and by blocks with all values at once and with some at a time.
  void CompareAll() {
    ASSERT_NO_FATAL_FAILURE(kernels_.Compile());
    for (const Trial& trial : trials_) {
      const std::string expected = RunOwnCode(kernels_, trial.plan, Inputs());
      for (uint64_t bytes : {uint64_t{1} << 30, uint64_t{9000}}) {
        const ByBlocks got = RunByBlocks(kernels_, trial.plan, trial.plain, Inputs(), bytes);
        EXPECT_EQ(got.output, expected)
            << bytes << " bytes at a time: " << trial.plan.task.ShortDebugString();
        most_launches_ = std::max(most_launches_, got.num_launches);
      }
    }
  }

  struct Trial {
    ops::Plan plan;
    Code plain;
  };
  Kernels kernels_;
  std::vector<Trial> trials_;
  std::vector<float> floats_ = std::vector<float>(300000);
  std::vector<double> doubles_ = std::vector<double>(300000);
  int most_launches_ = 0;
};

v1::Operation ReduceOf(R::Function function, std::vector<int32_t> axes, const std::string& text) {
  v1::Operation operation;
  operation.mutable_reduction()->set_function(function);
  operation.mutable_reduction()->mutable_axes()->Assign(axes.begin(), axes.end());
  if (text.empty()) {
    operation.mutable_reduction()->mutable_input()->set_handle(1);
  } else {
    *operation.mutable_reduction()->mutable_expression() =
        ops::testing::ExpressionOf(text, {"x", "y"}).expression();
  }
  operation.add_outputs()->set_handle(2);
  return operation;
}

TEST_F(ReduceByBlocksTest, ExpressionsAreBitIdenticalToCompiledCode) {
  struct Trial {
    std::vector<int64_t> shape;
    ArrayInfo second;
    std::vector<std::vector<int32_t>> axes;
  };
  ArrayInfo turned = Contiguous(DType::kFloat64, {6, 70, 50});
  turned.strides = {8, 48, 48 * 70};
  ArrayInfo upside_down = Contiguous(DType::kFloat64, {90, 1, 40});
  upside_down.strides[0] = -320;
  upside_down.offset = 89 * 320;
  const std::vector<Trial> trials = {{{3, 20000}, Contiguous(DType::kFloat64, {20000}), {{}, {1}}},
                                     {{2000, 20}, Contiguous(DType::kFloat64, {20}), {{0}}},
                                     {{6, 70, 50}, turned, {{0}, {1}, {0, 2}}},
                                     {{90, 7, 40}, upside_down, {{0, 1}, {1, 2}}},
                                     {{40, 10}, Contiguous(DType::kFloat64, {10}), {{0}, {1}}}};
  for (const Trial& trial : trials) {
    for (const std::vector<int32_t>& axes : trial.axes) {
      for (R::Function function : {R::FUNCTION_SUM, R::FUNCTION_ARGMAX}) {
        if (function == R::FUNCTION_ARGMAX && axes.size() > 1) continue;
        Add(ops::testing::Good(ReduceOf(function, axes, "(x - y) * 0.5 + x"),
                               {ops::testing::Array(DType::kFloat32, trial.shape), trial.second}));
      }
    }
  }
  CompareAll();
  EXPECT_GT(most_launches_, 20);  // some values were computed at a time
}

// Elements of each size are combined in accumulators of other sizes.
TEST_F(ReduceByBlocksTest, EveryTypeIsBitIdenticalToCompiledCode) {
  for (DType dtype : {DType::kInt8, DType::kInt32, DType::kComplex64}) {
    for (R::Function function : {R::FUNCTION_MEAN, R::FUNCTION_MIN}) {
      if (function == R::FUNCTION_MIN && IsComplex(dtype)) continue;
      ArrayInfo spaced = Contiguous(dtype, {60, 100});
      spaced.strides = {200 * ItemSize(dtype), 2 * ItemSize(dtype)};
      for (const ArrayInfo& array : {Contiguous(dtype, {60, 100}), spaced}) {
        for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{0}, {1}}) {
          Add(ops::testing::Good(ReduceOf(function, axes, ""), {ops::Input(array)}));
        }
      }
    }
  }
  CompareAll();
}

// The results of empty reductions, and a result that is written to a view.
TEST_F(ReduceByBlocksTest, EmptyReductionsAndViews) {
  Add(ops::testing::Good(ReduceOf(R::FUNCTION_SUM, {1}, ""),
                         {ops::testing::Array(DType::kFloat32, {5, 0})}));
  CompareAll();
  ArrayInfo view = Contiguous(DType::kFloat64, {60});
  view.strides = {16};
  v1::Operation operation = ReduceOf(R::FUNCTION_MEAN, {1}, "");
  operation.mutable_outputs(0)->set_existing(true);
  const ops::Plan plan = ops::testing::Good(
      operation, {ops::testing::Array(DType::kFloat64, {60, 100})}, ops::Input(view));
  wire::ReduceLaunch launch = plan.task.reduce();
  *launch.mutable_by_blocks() = ops::ReduceByBlocks(plan.code->reduce(), 1);
  EXPECT_EQ(launch.output().strides(0), 16);
  // The results have another location until they are finished.
  EXPECT_GE(ReduceByBlocksCuda(launch, kMultiprocessors, 1 << 20).scratch_bytes(), 60u * 8);
}

// A reduction that neither maps nor finishes is only its plain reduction.
TEST_F(ReduceByBlocksTest, PlainReductionIsOneLaunch) {
  for (int32_t axis : {0, 1}) {
    const ops::Plan plan = ops::testing::Good(ReduceOf(R::FUNCTION_MIN, {axis}, ""),
                                              {ops::testing::Array(DType::kInt8, {60, 100})});
    Add(plan);
  }
  CompareAll();
  EXPECT_EQ(most_launches_, 1);
}

TEST_F(ReduceByBlocksTest, TemporaryValuesAreBounded) {
  for (const auto& [shape, axes] : std::vector<std::pair<std::vector<int64_t>, int32_t>>{
           {{100, 3000}, 1}, {{3000, 100}, 0}, {{100, 30, 100}, 1}}) {
    const ops::Plan plan = ops::testing::Good(
        ReduceOf(R::FUNCTION_SUM, {axes}, "x * 2 - y"),
        {ops::testing::Array(DType::kFloat32, shape), ops::testing::Array(DType::kFloat32, {1})});
    wire::ReduceLaunch launch = plan.task.reduce();
    *launch.mutable_by_blocks() = ops::ReduceByBlocks(plan.code->reduce(), 1);
    const ReduceByBlocksCuda steps(launch, 132, 400000);
    EXPECT_LE(steps.scratch_bytes(), 400000u + 200000u);  // with partial results
    EXPECT_GE(steps.scratch_bytes(), 200000u);
  }
}

// The list of plain reductions has no two entries with equal code or equal names.
TEST_F(ReduceByBlocksTest, EveryElementAccessIsListed) {
  for (DType dtype : {DType::kFloat32, DType::kComplex128, DType::kInt32}) {
    const auto number = static_cast<int32_t>(dtype);
    for (bool columns : {false, true}) {
      std::map<std::string, int> listed;
      for (const ops::TakenAtOnce& taken : ops::TakenBy(Code::COMBINE_ADD, number, columns))
        ++listed[*EmitReduceCuda(
            ops::PlainReduceCode(Code::COMBINE_ADD, number, columns, taken).reduce())];
      for (const auto& [text, count] : listed) EXPECT_EQ(count, 1);
      for (int64_t bytes : {1, 2, 4, 8, 16}) {
        for (bool contiguous : {false, true}) {
          const auto code =
              ops::PlainReduceCode(Code::COMBINE_ADD, number, columns, {bytes, contiguous});
          EXPECT_EQ(listed.count(*EmitReduceCuda(code.reduce())), 1u);
        }
      }
      const size_t expected = IsInteger(dtype) ? 1 : columns ? 3 : 7;
      EXPECT_EQ(listed.size(), expected);
    }
  }
}

}  // namespace
}  // namespace stride::codegen
