#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "tests/support/cases.h"
#include "tests/support/plan_helpers.h"
#include "tests/unit/worker/codegen/native_modules.h"

namespace stride::codegen {
namespace {

using ops::Plan;
using testing::OpCase;

using RangeFunction = void (*)(const void* launch, int64_t begin, int64_t end);

// Runs an elementwise plan over [0, count) in uneven ranges. `buffers[slot]` is the start of the
// slot's buffer.
void RunPlan(RangeFunction run, const Plan& plan, const std::vector<char*>& buffers) {
  const auto& launch = plan.task.elementwise();
  std::vector<uint64_t> addresses;
  auto add = [&](const wire::Operand& operand) {
    addresses.push_back(reinterpret_cast<uint64_t>(buffers[operand.arena()] +
                                                   static_cast<int64_t>(operand.offset())));
  };
  for (const auto& operand : launch.inputs()) add(operand);
  for (const auto& operand : launch.outputs()) add(operand);
  LaunchBlock block = PackElementwise(launch, addresses);
  int64_t count = static_cast<int64_t>(block[0]), begin = 0;
  for (int64_t length = 1; begin < count; length = length * 2 + 1) {
    int64_t end = std::min(begin + length, count);
    run(block.data(), begin, end);
    begin = end;
  }
}

absl::StatusOr<Plan> PlanCase(const OpCase& op_case) {
  std::vector<ops::Input> inputs;
  for (const auto& column : op_case.inputs)
    inputs.push_back(Contiguous(column.dtype, {op_case.count}));
  return ops::PlanOperation(ops::testing::UfuncOf(op_case.op, static_cast<int>(inputs.size())),
                            inputs, {});
}

// Every case of tests/cases, through the emitted code.
TEST(CodegenCpu, UfuncCases) {
  auto cases = testing::ReadCases(STRIDE_CASES "/ufunc.case");
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_GT(cases->size(), 700u);
  constexpr size_t kTextsTogether = 120;
  int failures = 0;
  for (size_t first = 0; first < cases->size(); first += kTextsTogether) {
    size_t last = std::min(first + kTextsTogether, cases->size());
    std::vector<std::string> texts;
    std::vector<Plan> plans;
    for (size_t i = first; i < last; ++i) {
      auto plan = PlanCase((*cases)[i]);
      ASSERT_TRUE(plan.ok()) << plan.status() << " line " << (*cases)[i].line;
      ASSERT_EQ(plan->outputs[0].dtype, (*cases)[i].expected.dtype) << (*cases)[i].op;
      auto text = EmitElementwiseCpu(plan->code->elementwise());
      ASSERT_TRUE(text.ok()) << text.status();
      texts.push_back(*text);
      plans.push_back(*plan);
    }
    auto modules = testing::NativeModules::Compile(texts);
    ASSERT_TRUE(modules.ok()) << modules.status();
    for (size_t i = first; i < last; ++i) {
      OpCase& op_case = (*cases)[i];
      std::string output(op_case.expected.bytes.size(), '\xAB');
      std::vector<char*> buffers;
      for (auto& column : op_case.inputs) buffers.push_back(column.bytes.data());
      buffers.push_back(output.data());
      RunPlan(reinterpret_cast<RangeFunction>(modules->Find(i - first, kRunEntry)),
              plans[i - first], buffers);
      std::string wrong = testing::Differences(op_case, output);
      if (!wrong.empty() && ++failures <= 60) ADD_FAILURE() << wrong;
    }
  }
  EXPECT_EQ(failures, 0);
}

// An int32 array somewhere in its own buffer, filled with distinct numbers.
struct TestArray {
  ArrayInfo info;
  std::vector<int32_t> buffer;
};

int32_t ElementOf(const TestArray& array, const std::vector<int64_t>& index, size_t rank) {
  int64_t offset = array.info.offset;
  size_t lead = rank - array.info.shape.size();
  for (size_t i = 0; i < array.info.shape.size(); ++i) {
    offset += (array.info.shape[i] == 1 ? 0 : index[lead + i]) * array.info.strides[i];
  }
  return array.buffer[static_cast<size_t>(offset / 4)];
}

// A view with axes in random order, gaps, reversed and repeated axes.
TestArray RandomView(const std::vector<int64_t>& shape, std::mt19937& random) {
  TestArray array;
  array.info.dtype = DType::kInt32;
  array.info.shape = shape;
  array.info.strides.resize(shape.size());
  std::vector<size_t> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (random() % 2) std::shuffle(order.begin(), order.end(), random);
  int64_t stride = 4 * (random() % 3 ? 1 : 2), lowest = 0;
  for (size_t i = order.size(); i-- > 0;) {
    size_t axis = order[i];
    int kind = static_cast<int>(random() % 6);
    array.info.strides[axis] = kind == 0 ? -stride : kind == 1 ? 0 : stride;
    if (kind == 0) lowest -= stride * (std::max<int64_t>(shape[axis], 1) - 1);
    if (kind != 1) stride *= std::max<int64_t>(shape[axis], 1);
  }
  array.info.offset = -lowest;
  array.buffer.resize(static_cast<size_t>(stride - lowest) / 4 + 8);
  for (auto& element : array.buffer) element = static_cast<int32_t>(random());
  return array;
}

TEST(CodegenCpu, EveryLayout) {
  std::mt19937 random(7);
  struct Trial {
    TestArray a, b;
    Plan plan;
  };
  std::vector<Trial> trials;
  std::map<std::string, size_t> text_of;  // code -> text
  std::vector<std::string> texts;
  for (int i = 0; i < 150; ++i) {
    std::vector<int64_t> shape(random() % 5);
    for (auto& extent : shape)
      extent = random() % 20 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 7);
    std::vector<int64_t> narrow = shape;
    for (auto& extent : narrow) extent = random() % 4 ? extent : 1;
    if (!narrow.empty() && random() % 4 == 0) narrow.erase(narrow.begin());
    Trial trial{RandomView(shape, random), RandomView(narrow, random), {}};
    auto plan = ops::PlanOperation(ops::testing::ExpressionOf("a * 3 - b", {"a", "b"}),
                                   {trial.a.info, trial.b.info}, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    trial.plan = *plan;
    auto [known, is_new] = text_of.emplace(plan->code->SerializeAsString(), texts.size());
    if (is_new) texts.push_back(*EmitElementwiseCpu(plan->code->elementwise()));
    trials.push_back(std::move(trial));
  }
  auto modules = testing::NativeModules::Compile(texts);
  ASSERT_TRUE(modules.ok()) << modules.status();
  for (Trial& trial : trials) {
    const ArrayInfo& out = trial.plan.outputs[0];
    std::vector<int32_t> output(static_cast<size_t>(out.num_elements()) + 1, 0);
    RangeFunction run = reinterpret_cast<RangeFunction>(
        modules->Find(text_of[trial.plan.code->SerializeAsString()], kRunEntry));
    RunPlan(
        run, trial.plan,
        {reinterpret_cast<char*>(trial.a.buffer.data()),
         reinterpret_cast<char*>(trial.b.buffer.data()), reinterpret_cast<char*>(output.data())});
    size_t rank = out.shape.size();
    std::vector<int64_t> index(rank, 0);
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      int64_t rest = i;
      for (size_t axis = rank; axis-- > 0; rest /= out.shape[axis])
        index[axis] = rest % out.shape[axis];
      uint32_t want = static_cast<uint32_t>(ElementOf(trial.a, index, rank)) * 3u -
                      static_cast<uint32_t>(ElementOf(trial.b, index, rank));
      ASSERT_EQ(static_cast<uint32_t>(output[static_cast<size_t>(i)]), want) << i;
    }
  }
}

template <typename T>
std::vector<T> Create(const v1::Creation& creation) {
  v1::Operation operation;
  *operation.mutable_creation() = creation;
  operation.add_outputs()->set_handle(1);
  auto plan = ops::PlanOperation(operation, {}, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  EXPECT_EQ(ItemSize(plan->outputs[0].dtype), static_cast<int64_t>(sizeof(T)));
  auto modules = testing::NativeModules::Compile({*EmitElementwiseCpu(plan->code->elementwise())});
  EXPECT_TRUE(modules.ok()) << modules.status();
  std::vector<T> output(static_cast<size_t>(plan->outputs[0].num_elements()));
  RunPlan(reinterpret_cast<RangeFunction>(modules->Find(0, kRunEntry)), *plan,
          {reinterpret_cast<char*>(output.data())});
  return output;
}

// Results beyond 16 MiB bypass the cache, block by block. Checked for any start and range size, in
// place too, and that nothing outside is written.
TEST(LaunchBlockTest, TileAxisFollowsTransposedInput) {
  auto axis_of = [](std::vector<int64_t> extents, std::vector<int64_t> strides) {
    wire::ElementwiseLaunch launch;
    for (int64_t extent : extents) launch.add_extents(extent);
    wire::Operand* input = launch.add_inputs();
    input->set_dtype(static_cast<int>(DType::kFloat32));
    for (int64_t stride : strides) input->add_strides(stride);
    return TileAxis(launch);
  };
  EXPECT_EQ(axis_of({64, 64}, {4, 256}), 0);
  EXPECT_EQ(axis_of({7, 64, 64}, {16384, 4, 256}), 1);
  EXPECT_EQ(axis_of({64, 64}, {256, 4}), -1);  // along the last axis
  EXPECT_EQ(axis_of({64, 64}, {4, 0}), -1);    // repeated along the last axis
  EXPECT_EQ(axis_of({31, 64}, {4, 124}), -1);  // shorter than a tile
  EXPECT_EQ(axis_of({64, 31}, {4, 256}), -1);
  EXPECT_EQ(axis_of({64, 64}, {8, 512}), -1);  // every other element
  EXPECT_EQ(axis_of({4096}, {4}), -1);
}

TEST(CodegenCpu, LargeResults) {
  constexpr int64_t kCount = (16 << 20) / 4 + 1037;
  auto plan = ops::PlanOperation(
      ops::testing::UfuncOf("add", 2),
      {Contiguous(DType::kInt32, {kCount}), Contiguous(DType::kInt32, {kCount})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto text = EmitElementwiseCpu(plan->code->elementwise());
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_NE(text->find("st_streamed()"), std::string::npos);
  auto modules = testing::NativeModules::Compile({*text});
  ASSERT_TRUE(modules.ok()) << modules.status();
  auto run = reinterpret_cast<RangeFunction>(modules->Find(0, kRunEntry));
  for (int shift : {0, 3, 15}) {
    std::vector<int32_t> left(kCount), right(kCount), out(kCount + 32, -7);
    for (int64_t i = 0; i < kCount; ++i) {
      left[i] = static_cast<int32_t>(i * 3);
      right[i] = static_cast<int32_t>(i ^ 0x55);
    }
    auto bytes = [](auto& data, int64_t at) { return reinterpret_cast<char*>(data.data() + at); };
    RunPlan(run, *plan, {bytes(left, 0), bytes(right, 0), bytes(out, shift)});
    for (int64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(out[i + shift], left[i] + right[i]) << i << " from " << shift;
    for (int64_t i = 0; i < 32; ++i) {
      int64_t outside = i < shift ? i : kCount + i;
      ASSERT_EQ(out[outside], -7) << outside;
    }
    std::vector<int32_t> sums(out.begin() + shift, out.begin() + shift + kCount);
    RunPlan(run, *plan, {bytes(left, 0), bytes(right, 0), bytes(left, 0)});
    ASSERT_EQ(left, sums);
  }
}

TEST(CodegenCpu, Creation) {
  v1::Creation range;
  range.mutable_range()->mutable_start()->set_int_value(10);
  range.mutable_range()->mutable_stop()->set_int_value(-3);
  range.mutable_range()->mutable_step()->set_int_value(-4);
  EXPECT_EQ(Create<int64_t>(range), (std::vector<int64_t>{10, 6, 2, -2}));
  v1::Creation tenths;
  tenths.mutable_range()->mutable_stop()->set_float_value(1);
  tenths.mutable_range()->mutable_step()->set_float_value(0.1);
  std::vector<double> expected;
  for (int i = 0; i < 10; ++i) expected.push_back(i * 0.1);
  EXPECT_EQ(Create<double>(tenths), expected);
  v1::Creation space;
  space.mutable_linear_space()->mutable_start()->set_float_value(0);
  space.mutable_linear_space()->mutable_stop()->set_float_value(0.7);
  space.mutable_linear_space()->set_count(8);
  std::vector<double> points = Create<double>(space);
  ASSERT_EQ(points.size(), 8u);
  EXPECT_EQ(points[7], 0.7);  // exactly, though 7 * (0.7 / 7) is not
  EXPECT_EQ(points[1], 0.7 / 7);
}

}  // namespace
}  // namespace stride::codegen
