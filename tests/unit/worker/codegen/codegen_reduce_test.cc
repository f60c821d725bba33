#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "gtest/gtest.h"
#include "server/ops/pieces.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "tests/support/plan_helpers.h"
#include "tests/unit/worker/codegen/native_modules.h"

namespace stride::codegen {
namespace {

using ops::Plan;
using R = v1::Reduction;
using RangeFunction = void (*)(const void* launch, int64_t begin, int64_t end);

v1::Operation ReduceOf(R::Function function, std::vector<int32_t> axes = {}) {
  v1::Operation operation;
  operation.mutable_reduction()->set_function(function);
  operation.mutable_reduction()->mutable_axes()->Assign(axes.begin(), axes.end());
  operation.add_outputs()->set_handle(2);
  return operation;
}

void RunInParts(RangeFunction run, const LaunchBlock& block, int64_t count, int64_t part) {
  for (int64_t begin = 0; begin < count; begin += part)
    run(block.data(), begin, std::min(begin + part, count));
}

// Runs the plan's reduction with its items assigned `part` at a time. `inputs`: by slot.
std::string RunReduce(const testing::NativeModules& modules, size_t text, const Plan& plan,
                      const std::vector<const char*>& inputs, int64_t part,
                      std::optional<int64_t> output_bytes = std::nullopt) {
  const auto& launch = plan.task.reduce();
  std::string output(static_cast<size_t>(output_bytes.value_or(plan.outputs[0].size_bytes())),
                     '\xAB');
  ReduceShape shape = PlanReduceCpu(launch);
  std::vector<uint64_t> scratch(shape.scratch_bytes / 8 + 2);
  std::vector<uint64_t> addresses;
  for (const wire::Operand& input : launch.inputs())
    addresses.push_back(reinterpret_cast<uint64_t>(inputs[input.arena()]) + input.offset());
  addresses.push_back(reinterpret_cast<uint64_t>(output.data()));
  LaunchBlock block =
      PackReduce(launch, shape, addresses, reinterpret_cast<uint64_t>(scratch.data()));
  RunInParts(reinterpret_cast<RangeFunction>(modules.Find(text, kReduceEntry)), block,
             shape.num_items, part);
  if (shape.two_passes) {
    RunInParts(reinterpret_cast<RangeFunction>(modules.Find(text, kReduceFinishEntry)), block,
               shape.kept_count, part);
  }
  return output;
}

std::string RunReduce(const testing::NativeModules& modules, size_t text, const Plan& plan,
                      const char* input, int64_t part) {
  return RunReduce(modules, text, plan, std::vector<const char*>{input}, part);
}

struct Trial {
  R::Function function;
  ArrayInfo info;
  std::vector<int32_t> axes;
};

// The reference: every element in C order, one at a time, exact in int64.
std::vector<int64_t> Reference(const Trial& trial, const std::vector<int32_t>& data) {
  size_t rank = trial.info.shape.size();
  std::vector<bool> reduced(rank, trial.axes.empty());
  for (int axis : trial.axes) reduced[axis] = true;
  std::map<int64_t, std::pair<int64_t, int64_t>> results;  // kept number -> value, index
  std::map<int64_t, int64_t> seen;
  for (int64_t i = 0; i < trial.info.num_elements(); ++i) {
    int64_t rest = i, kept = 0, kept_step = 1, offset = trial.info.offset;
    for (size_t axis = rank; axis-- > 0; rest /= trial.info.shape[axis]) {
      int64_t at = rest % trial.info.shape[axis];
      offset += at * trial.info.strides[axis];
      if (!reduced[axis]) kept += at * kept_step, kept_step *= trial.info.shape[axis];
    }
    int64_t x = data[static_cast<size_t>(offset / 4)];
    int64_t number = seen[kept]++;
    auto [at, is_new] = results.emplace(kept, std::pair(x, number));
    auto& [value, index] = at->second;
    switch (trial.function) {
      case R::FUNCTION_SUM:
        if (!is_new) value += x;
        break;
      case R::FUNCTION_PROD:
        if (!is_new)
          value = static_cast<int64_t>(static_cast<uint64_t>(value) * static_cast<uint64_t>(x));
        break;
      case R::FUNCTION_MIN:
        value = std::min(value, x);
        break;
      case R::FUNCTION_MAX:
        value = std::max(value, x);
        break;
      case R::FUNCTION_ANY:
        value = (!is_new && value) || x;
        break;
      case R::FUNCTION_ALL:
        value = (is_new || value) && x;
        break;
      case R::FUNCTION_ARGMIN:
        if (x < value) value = x, index = number;
        break;
      default:
        if (x > value) value = x, index = number;
    }
  }
  std::vector<int64_t> values;
  bool is_arg = trial.function == R::FUNCTION_ARGMIN || trial.function == R::FUNCTION_ARGMAX;
  for (const auto& [kept, result] : results)
    values.push_back(is_arg ? result.second : result.first);
  return values;
}

std::vector<int64_t> Widen(const std::string& bytes, DType dtype) {
  std::vector<int64_t> values;
  size_t size = static_cast<size_t>(ItemSize(dtype));
  for (size_t i = 0; i < bytes.size(); i += size) {
    int64_t value = 0;
    std::memcpy(&value, bytes.data() + i, size);
    values.push_back(size == 4 ? static_cast<int32_t>(value) : value);
  }
  return values;
}

std::vector<Trial> MakeTrials() {
  std::vector<Trial> trials;
  ArrayInfo cube = Contiguous(DType::kInt32, {5, 37, 40});
  ArrayInfo turned = cube;
  std::swap(turned.shape[0], turned.shape[2]);
  std::swap(turned.strides[0], turned.strides[2]);
  ArrayInfo reversed = cube;
  reversed.strides[1] = -reversed.strides[1];
  reversed.offset = 36 * cube.strides[1];
  ArrayInfo skipping = Contiguous(DType::kInt32, {5, 37, 20});
  skipping.strides = {37 * 40 * 4, 160, 8};
  ArrayInfo repeated = Contiguous(DType::kInt32, {6, 37});
  repeated.strides = {0, 4};
  for (const ArrayInfo& info :
       {cube, turned, reversed, skipping, repeated, Contiguous(DType::kInt32, {200000}),
        Contiguous(DType::kInt32, {9000, 20}), Contiguous(DType::kInt32, {20, 9000}),
        Contiguous(DType::kInt32, {1})}) {
    std::vector<std::vector<int32_t>> axis_sets = {{}, {0}};
    if (info.shape.size() > 1) axis_sets.push_back({1});
    if (info.shape.size() > 2) axis_sets.insert(axis_sets.end(), {{2}, {0, 2}, {1, 2}, {0, 1}});
    for (const auto& axes : axis_sets) {
      for (int function = R::FUNCTION_SUM; function <= R::FUNCTION_ARGMAX; ++function) {
        if (function == R::FUNCTION_MEAN || (function >= R::FUNCTION_ARGMIN && axes.size() > 1))
          continue;
        trials.push_back({static_cast<R::Function>(function), info, axes});
      }
    }
  }
  return trials;
}

TEST(CodegenReduce, EveryLayoutInEveryOrder) {
  std::mt19937 random(3);
  std::vector<int32_t> data(200000);
  for (auto& element : data) element = static_cast<int32_t>(random() % 2001) - 1000;
  std::vector<Plan> plans;
  std::map<std::string, size_t> text_of;
  std::vector<std::string> texts;
  std::vector<Trial> trials = MakeTrials();
  for (const Trial& trial : trials) {
    auto plan =
        ops::PlanOperation(ReduceOf(trial.function, trial.axes), {ops::Input(trial.info)}, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    auto [known, is_new] = text_of.emplace(plan->code->SerializeAsString(), texts.size());
    if (is_new) texts.push_back(*EmitReduceCpu(plan->code->reduce()));
    plans.push_back(*plan);
  }
  auto modules = testing::NativeModules::Compile(texts);
  ASSERT_TRUE(modules.ok()) << modules.status();
  for (size_t i = 0; i < trials.size(); ++i) {
    size_t text = text_of[plans[i].code->SerializeAsString()];
    std::string all =
        RunReduce(*modules, text, plans[i], reinterpret_cast<const char*>(data.data()), 1 << 30);
    EXPECT_EQ(Widen(all, plans[i].outputs[0].dtype), Reference(trials[i], data))
        << plans[i].task.ShortDebugString();
    EXPECT_EQ(all,
              RunReduce(*modules, text, plans[i], reinterpret_cast<const char*>(data.data()), 1));
  }
}

// The plan's result for an array of T, as bytes of Out.
template <typename Out, typename T>
std::vector<Out> Reduce(R::Function function, DType dtype, const std::vector<T>& data,
                        std::vector<int64_t> shape = {}, std::vector<int32_t> axes = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(data.size())};
  auto plan = ops::PlanOperation(ReduceOf(function, axes), {ops::testing::Array(dtype, shape)}, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto modules = testing::NativeModules::Compile({*EmitReduceCpu(plan->code->reduce())});
  EXPECT_TRUE(modules.ok()) << modules.status();
  std::string bytes = RunReduce(*modules, 0, *plan, reinterpret_cast<const char*>(data.data()), 3);
  std::vector<Out> result(bytes.size() / sizeof(Out));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

TEST(CodegenReduce, FloatSumsArePairwise) {
  // Naive float32 summation is off by tens of units here.
  std::vector<float> tenths(3000000, 0.1f);
  float sum = Reduce<float>(R::FUNCTION_SUM, DType::kFloat32, tenths)[0];
  double exact = 3000000.0 * static_cast<double>(0.1f);
  EXPECT_NEAR(sum, exact, 0.1);  // three units in the last place
  std::vector<float> columns(20000 * 32, 0.1f);
  for (float column : Reduce<float>(R::FUNCTION_SUM, DType::kFloat32, columns, {20000, 32}, {0})) {
    EXPECT_NEAR(column, 20000.0 * static_cast<double>(0.1f), 5e-3);
  }
  EXPECT_NEAR(Reduce<float>(R::FUNCTION_MEAN, DType::kFloat32, tenths)[0], 0.1, 1e-7);
}

// The order of combination depends only on the shape, not on the assignment of items.
TEST(CodegenReduce, FloatSumsAreIndependentOfTheSplit) {
  std::vector<float> data(300000);
  std::mt19937 random(5);
  for (float& x : data) x = static_cast<float>(random() % 100000) * 1e-3f - 40;
  for (const auto& [shape, axes] :
       std::vector<std::pair<std::vector<int64_t>, std::vector<int32_t>>>{{{300000}, {}},
                                                                          {{3000, 100}, {0}},
                                                                          {{3000, 100}, {1}},
                                                                          {{100, 3000}, {0}},
                                                                          {{37, 3000}, {1}}}) {
    auto plan = ops::PlanOperation(ReduceOf(R::FUNCTION_SUM, axes),
                                   {ops::testing::Array(DType::kFloat32, shape)}, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    auto modules = testing::NativeModules::Compile({*EmitReduceCpu(plan->code->reduce())});
    ASSERT_TRUE(modules.ok()) << modules.status();
    const char* const bytes = reinterpret_cast<const char*>(data.data());
    const std::string whole = RunReduce(*modules, 0, *plan, bytes, 1 << 30);
    for (int64_t part : {1, 2, 7}) EXPECT_EQ(whole, RunReduce(*modules, 0, *plan, bytes, part));
  }
}

std::string RunLoop(const testing::NativeModules& modules, size_t text, const Plan& plan,
                    const std::vector<const char*>& inputs) {
  const auto& launch = plan.task.elementwise();
  std::string output(static_cast<size_t>(plan.outputs[0].size_bytes()), '\xAB');
  std::vector<uint64_t> addresses;
  for (const wire::Operand& input : launch.inputs())
    addresses.push_back(reinterpret_cast<uint64_t>(inputs[input.arena()]) + input.offset());
  addresses.push_back(reinterpret_cast<uint64_t>(output.data()));
  int64_t count = 1;
  for (int64_t extent : launch.extents()) count *= extent;
  RunInParts(reinterpret_cast<RangeFunction>(modules.Find(text, kRunEntry)),
             PackElementwise(launch, addresses), count, 1 << 30);
  return output;
}

// Like pieces with partial results. Elements have a large mean that differs per piece, so that a
// mean in one number would lose their digits.
TEST(CodegenReduce, CombinesMomentsOfPieces) {
  std::mt19937 random(23);
  for (DType dtype : {DType::kFloat32, DType::kComplex128}) {
    for (const auto& [shape, axes] :
         std::vector<std::pair<std::vector<int64_t>, std::vector<int32_t>>>{
             {{90000}, {}}, {{6000, 20}, {0}}, {{6000, 7}, {0}}}) {
      auto plan =
          ops::testing::Good(ReduceOf(R::FUNCTION_VAR, axes), {ops::testing::Array(dtype, shape)});
      const int64_t num_results = plan.outputs[0].num_elements();
      const int64_t num_elements = ops::testing::Array(dtype, shape)->num_elements();
      std::string data(static_cast<size_t>(num_elements * ItemSize(dtype)), 0);
      std::vector<std::complex<long double>> sums(static_cast<size_t>(num_results));
      std::vector<long double> squares(sums.size());
      std::vector<std::complex<double>> values;
      for (int64_t i = 0; i < num_elements; ++i) {
        const double real = 3000 * (1 + i * 4 / num_elements) + random() % 1000 * 1e-3;
        if (dtype == DType::kFloat32) {
          const auto value = static_cast<float>(real);
          std::memcpy(&data[static_cast<size_t>(i) * 4], &value, 4);
          values.emplace_back(value);
        } else {
          values.emplace_back(real, random() % 1000 * 1e-3);
          std::memcpy(&data[static_cast<size_t>(i) * 16], &values.back(), 16);
        }
        sums[static_cast<size_t>(i % num_results)] += values.back();
      }
      const auto count = static_cast<long double>(num_elements / num_results);
      for (int64_t i = 0; i < num_elements; ++i) {
        const auto result = static_cast<size_t>(i % num_results);
        squares[result] += std::norm(std::complex<long double>(values[static_cast<size_t>(i)]) -
                                     sums[result] / count);
      }
      auto pieces = ops::Pieces::Cut(plan, 1, static_cast<int64_t>(data.size()) / 7);
      ASSERT_TRUE(pieces.ok()) << pieces.status();
      std::vector<ops::Piece> all;
      std::vector<std::string> texts;
      for (int64_t i = 0; i < pieces->size(); ++i) {
        all.push_back(pieces->At(i));
        texts.push_back(*EmitCpu(*all.back().plan.code));
      }
      ASSERT_GT(all.size(), 7u);
      auto modules = testing::NativeModules::Compile(texts);
      ASSERT_TRUE(modules.ok()) << modules.status();
      std::string partials, result;
      for (size_t i = 0; i < all.size(); ++i) {
        const bool combines = all[i].role == ops::Piece::Role::kCombine;
        const char* const input =
            combines ? partials.data() : data.data() + all[i].sources[0].region.offset;
        (combines ? result : partials) += RunReduce(
            *modules, i, all[i].plan, std::vector<const char*>{input}, 3, all[i].output_bytes);
        ASSERT_TRUE(combines || all[i].sources[0].region.num_runs() == 1);
      }
      for (size_t i = 0; i < squares.size(); ++i) {
        const auto expected = static_cast<double>(squares[i] / count);
        double got = 0;
        if (dtype == DType::kFloat32) {
          float narrow = 0;
          std::memcpy(&narrow, result.data() + i * 4, 4);
          got = narrow;
        } else {
          std::memcpy(&got, result.data() + i * 8, 8);
        }
        EXPECT_NEAR(got / expected, 1, dtype == DType::kFloat32 ? 1e-6 : 1e-14) << i;
      }
    }
  }
}

// In any layout of the arrays that the elements are computed from. Another order of combination
// gives other bits in most of these sums.
TEST(CodegenReduce, ComputedElementsAreBitIdenticalToAnArray) {
  struct Computed {
    std::vector<int64_t> shape;
    ArrayInfo second;
    std::vector<std::vector<int32_t>> axes;
  };
  ArrayInfo turned = Contiguous(DType::kFloat32, {6, 70, 50});
  turned.strides = {4, 24, 24 * 70};
  ArrayInfo spaced = Contiguous(DType::kFloat32, {300, 90});
  spaced.strides = {800, 8};
  ArrayInfo upside_down = Contiguous(DType::kFloat32, {90, 1, 40});
  upside_down.strides[0] = -160;
  upside_down.offset = 89 * 160;
  const std::vector<std::vector<int32_t>> of_matrix = {{}, {0}, {1}},
                                          of_cube = {{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}};
  const std::vector<Computed> all = {
      {{200000}, Contiguous(DType::kFloat32, {200000}), {{}}},
      {{200000}, Contiguous(DType::kFloat64, {}), {{}}},
      {{3, 70000}, Contiguous(DType::kFloat32, {70000}), of_matrix},
      {{3, 70000}, Contiguous(DType::kInt16, {3, 1}), of_matrix},
      {{5000, 20}, Contiguous(DType::kFloat32, {20}), of_matrix},
      {{300, 90}, spaced, of_matrix},
      {{6, 70, 50}, Contiguous(DType::kFloat32, {70, 1}), of_cube},
      {{6, 70, 50}, Contiguous(DType::kFloat32, {6, 1, 50}), of_cube},
      {{6, 70, 50}, turned, of_cube},
      {{90, 7, 40}, upside_down, of_cube},
      {{40, 10}, Contiguous(DType::kFloat32, {10}), of_matrix}};
  std::mt19937 random(17);
  std::vector<float> floats(400000);
  for (float& x : floats) x = static_cast<float>(random() % 100000) * 1e-3f - 40;
  const std::vector<const char*> inputs(2, reinterpret_cast<const char*>(floats.data()));

  std::vector<std::string> texts;
  std::map<std::string, size_t> text_of;
  auto text = [&](const Plan& plan) {
    auto [known, is_new] = text_of.emplace(plan.code->SerializeAsString(), texts.size());
    if (is_new) texts.push_back(*EmitCpu(*plan.code));
    return known->second;
  };
  struct Apart {
    Plan elements, reduction, together;
  };
  std::vector<Apart> trials;
  for (const Computed& one : all) {
    const std::vector<ops::Input> arrays = {ops::testing::Array(DType::kFloat32, one.shape),
                                            ops::Input(one.second)};
    for (const auto& axes : one.axes) {
      for (R::Function function : {R::FUNCTION_SUM, R::FUNCTION_ARGMAX, R::FUNCTION_VAR}) {
        if (function == R::FUNCTION_ARGMAX && axes.size() > 1) continue;
        const v1::Operation expression =
            ops::testing::ExpressionOf("(x - y) * 0.5 + x", {"x", "y"});
        Apart trial{ops::testing::Good(expression, arrays), {}, {}};
        v1::Operation reduction = ReduceOf(function, axes);
        trial.reduction = ops::testing::Good(reduction, {ops::Input(trial.elements.outputs[0])});
        *reduction.mutable_reduction()->mutable_expression() = expression.expression();
        trial.together = ops::testing::Good(reduction, arrays);
        for (const Plan* plan : {&trial.elements, &trial.reduction, &trial.together}) text(*plan);
        trials.push_back(std::move(trial));
      }
    }
  }
  auto modules = testing::NativeModules::Compile(texts);
  ASSERT_TRUE(modules.ok()) << modules.status();
  for (const Apart& trial : trials) {
    const std::string elements = RunLoop(*modules, text(trial.elements), trial.elements, inputs);
    const std::string apart =
        RunReduce(*modules, text(trial.reduction), trial.reduction, elements.data(), 3);
    EXPECT_EQ(RunReduce(*modules, text(trial.together), trial.together, inputs, 3), apart)
        << trial.together.task.ShortDebugString();
  }
}

// Launches of a device with 132 multiprocessors: 792 blocks at once.
ReduceShape OnGpu(std::vector<int64_t> shape, int axis) {
  auto plan = ops::PlanOperation(ReduceOf(R::FUNCTION_SUM, {axis}),
                                 {ops::testing::Array(DType::kFloat32, std::move(shape))}, {});
  return PlanReduceCuda(plan->task.reduce(), 132);
}

TEST(CodegenReduce, GpuSplitsLongResultsOfFewWaves) {
  for (int64_t rows : {2500, 800, 120}) {
    const ReduceShape shape = OnGpu({rows, 300000}, 1);
    EXPECT_GE(shape.splits * shape.chunk, 300000) << rows;
    // Ten times as many as run at once, if the shortest useful parts give that many.
    EXPECT_TRUE(shape.first.grid[0] * shape.first.grid[1] >= 10 * 792 || shape.splits == 9)
        << rows << ": " << shape.splits;
    EXPECT_LE(shape.first.grid[0], static_cast<uint32_t>(ReduceArrivals(132))) << rows;
  }
  const ReduceShape columns = OnGpu({300000, 64000}, 0);
  EXPECT_EQ(columns.first.grid[0], 2000u);
  EXPECT_EQ(columns.splits, 5);
}

TEST(CodegenReduce, GpuSplitsOthersIntoAtMostOneWave) {
  EXPECT_EQ(OnGpu({30000000}, 0).splits, 792);
  EXPECT_EQ(OnGpu({99, 300000}, 1).splits, 8);
  EXPECT_EQ(OnGpu({2500, 60000}, 1).splits, 1);
  EXPECT_EQ(OnGpu({5000, 300000}, 1).splits, 1);
  EXPECT_EQ(OnGpu({4096, 4096}, 0).splits, 6);  // 128 blocks each: 768 of 792
  EXPECT_EQ(OnGpu({100, 60000}, 1).splits, 7);
}

TEST(CodegenReduce, ProjectExample) {
  std::vector<int64_t> range(100000);
  for (size_t i = 0; i < range.size(); ++i) range[i] = static_cast<int64_t>(i);
  EXPECT_EQ(Reduce<int64_t>(R::FUNCTION_SUM, DType::kInt64, range)[0], 4999950000);
  EXPECT_NEAR(Reduce<double>(R::FUNCTION_NORM, DType::kInt64, range)[0], 18257281.65280911, 1e-6);
  EXPECT_EQ(Reduce<double>(R::FUNCTION_MEAN, DType::kInt64, range)[0], 49999.5);
}

TEST(CodegenReduce, SpecialValues) {
  const float nan = NAN, inf = INFINITY;
  EXPECT_TRUE(std::isnan(
      Reduce<float>(R::FUNCTION_MAX, DType::kFloat32, std::vector<float>{1, nan, 3})[0]));
  EXPECT_TRUE(std::isnan(
      Reduce<float>(R::FUNCTION_MIN, DType::kFloat32, std::vector<float>{nan, 1, 3})[0]));
  EXPECT_EQ(Reduce<float>(R::FUNCTION_MAX, DType::kFloat32, std::vector<float>{-inf, -inf})[0],
            -inf);
  EXPECT_EQ(Reduce<int64_t>(R::FUNCTION_ARGMAX, DType::kFloat32,
                            std::vector<float>{1, inf, nan, 3, nan})[0],
            2);
  EXPECT_EQ(Reduce<int64_t>(R::FUNCTION_ARGMIN, DType::kFloat32, std::vector<float>{4, 1, 3, 1})[0],
            1);
  std::vector<float> many(1000, inf);
  EXPECT_EQ(Reduce<int64_t>(R::FUNCTION_ARGMIN, DType::kFloat32, many)[0], 0);
  EXPECT_EQ(Reduce<float>(R::FUNCTION_SUM, DType::kFloat32, std::vector<float>{}, {0})[0], 0);
  EXPECT_EQ(Reduce<int64_t>(R::FUNCTION_PROD, DType::kInt8, std::vector<int8_t>{}, {3, 0}, {1}),
            (std::vector<int64_t>{1, 1, 1}));
  EXPECT_TRUE(
      std::isnan(Reduce<double>(R::FUNCTION_MEAN, DType::kFloat64, std::vector<double>{}, {0})[0]));
  // 16-bit floats accumulate in float32: 2049 ones are not stuck at 2048.
  std::vector<uint16_t> ones(4096, 0x3C00);
  EXPECT_EQ(Reduce<uint16_t>(R::FUNCTION_SUM, DType::kFloat16, ones)[0], 0x6C00);
  // The same as bfloat16, which cannot represent 257: the sum is rounded once, at the end.
  std::vector<uint16_t> brains(4099, 0x3F80);
  EXPECT_EQ(Reduce<uint16_t>(R::FUNCTION_SUM, DType::kBFloat16, brains)[0], 0x4580);
  EXPECT_EQ(Reduce<uint16_t>(R::FUNCTION_MEAN, DType::kBFloat16, brains)[0], 0x3F80);
  EXPECT_EQ(Reduce<uint16_t>(R::FUNCTION_MAX, DType::kBFloat16,
                             std::vector<uint16_t>{0x3F80, 0xC000, 0x4049})[0],
            0x4049);
  EXPECT_EQ(Reduce<uint16_t>(R::FUNCTION_MIN, DType::kBFloat16,
                             std::vector<uint16_t>{0x3F80, 0xC000, 0x4049})[0],
            0xC000);
  std::vector<float> complex = {3, 4, 0, 12};
  EXPECT_EQ(Reduce<float>(R::FUNCTION_NORM, DType::kComplex64, complex, {2})[0], 13);
  EXPECT_EQ(
      Reduce<float>(R::FUNCTION_MAX, DType::kComplex64, std::vector<float>{1, 5, 2, -1, 2, 0}, {3}),
      (std::vector<float>{2, 0}));
  EXPECT_EQ(Reduce<int64_t>(R::FUNCTION_SUM, DType::kInt8, std::vector<int8_t>(1000, 100))[0],
            100000);
}

TEST(CodegenReduce, IntegerMatmul) {
  v1::Operation operation;
  operation.mutable_matmul()->mutable_left()->set_handle(1);
  operation.mutable_matmul()->mutable_right()->set_handle(2);
  operation.add_outputs()->set_handle(3);
  const int64_t m = 7, k = 9, n = 600;
  ArrayInfo right = Contiguous(DType::kInt32, {k, n});
  right.strides = {4, 4 * k};  // transposed: both factors are contiguous along the summed axis
  auto plan = ops::PlanOperation(
      operation, {ops::testing::Array(DType::kInt32, {2, m, k}), ops::Input(right)}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto modules = testing::NativeModules::Compile({*EmitMatmulCpu(plan->code->matmul())});
  ASSERT_TRUE(modules.ok()) << modules.status();
  std::vector<int32_t> a(2 * m * k), b(k * n), c(2 * m * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int32_t>(i * 7 % 31) - 15;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int32_t>(i * 5 % 29) - 14;
  LaunchBlock block =
      PackMatmul(plan->task.matmul(), reinterpret_cast<uint64_t>(a.data()),
                 reinterpret_cast<uint64_t>(b.data()), reinterpret_cast<uint64_t>(c.data()));
  ASSERT_EQ(MatmulRows(plan->task.matmul()), 2 * m);
  RunInParts(reinterpret_cast<RangeFunction>(modules->Find(0, kRunEntry)), block, 2 * m, 3);
  for (int64_t row = 0; row < 2 * m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      int32_t want = 0;
      for (int64_t i = 0; i < k; ++i) want += a[row * k + i] * b[column * k + i];
      ASSERT_EQ(c[row * n + column], want);
    }
  }
}

}  // namespace
}  // namespace stride::codegen
