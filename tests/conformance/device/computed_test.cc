// Reductions that compute their elements while they read. The result is bit-identical to the
// reduction of an array of these elements on the same device.
#include <random>

#include "absl/strings/str_cat.h"
#include "server/ops/block_loops.h"
#include "server/ops/reduce_by_blocks.h"
#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

using R = v1::Reduction;

struct Case {
  std::string expression;  // over a, b and c
  std::vector<HostArray> operands;
  R::Function function = R::FUNCTION_SUM;
  std::vector<int32_t> axes;
  bool keep_dims = false;
  bool skip_nan = false;

  std::string Text() const {
    std::string text = absl::StrCat(R::Function_Name(function), " of ", expression, " along ");
    for (int32_t axis : axes) absl::StrAppend(&text, axis, " ");
    for (const HostArray& one : operands) {
      absl::StrAppend(&text, "; ", std::string(Name(one.info.dtype)));
      for (size_t i = 0; i < one.info.shape.size(); ++i)
        absl::StrAppend(&text, " ", one.info.shape[i], "/", one.info.strides[i]);
    }
    return text;
  }
};

v1::Expression ExpressionOf(const Case& one) {
  v1::Expression expression;
  expression.set_text(one.expression);
  for (size_t i = 0; i < one.operands.size(); ++i)
    (*expression.mutable_inputs())[std::string(1, static_cast<char>('a' + i))].set_handle(1 + i);
  return expression;
}

class ComputedTest : public DeviceTest {
 protected:
  v1::Operation Reduce(const Case& one) {
    v1::Operation operation = ReductionOf(one.function, one.axes);
    operation.mutable_reduction()->set_keep_dims(one.keep_dims);
    operation.mutable_reduction()->set_skip_nan(one.skip_nan);
    return operation;
  }

  // Computes the elements as an array, and reduces it.
  absl::StatusOr<HostArray> Apart(const Case& one, const std::vector<DeviceArray>& operands) {
    v1::Operation expression;
    *expression.mutable_expression() = ExpressionOf(one);
    expression.add_outputs()->set_handle(100);
    auto elements = harness().Compute(expression, operands);
    if (!elements.ok()) return elements.status();
    auto result = harness().Compute(Reduce(one), {*elements});
    if (!result.ok()) return result.status();
    return harness().Get(*result);
  }

  v1::Operation Together(const Case& one) {
    v1::Operation operation = Reduce(one);
    operation.mutable_reduction()->clear_input();
    *operation.mutable_reduction()->mutable_expression() = ExpressionOf(one);
    return operation;
  }

  // Without compiled code of its own.
  void CompareByBlocks(const Case& one, const std::vector<DeviceArray>& operands,
                       const HostArray& expected) {
    const v1::Operation operation = Together(one);
    std::vector<ops::Input> inputs;
    for (const DeviceArray& operand : operands) inputs.emplace_back(operand.info);
    auto plan = ops::PlanOperation(operation, inputs, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const wire::ReduceCode& code = plan->code->reduce();
    const auto plain = ops::PlainReduceCode(code, harness().subject().runs);
    ASSERT_EQ(plain.has_value(), code.map().results_size() == 1) << one.Text();
    if (!plain) return;
    DeviceArray output;
    auto task = harness().Prepare(operation, operands, nullptr, &output);
    ASSERT_TRUE(task.ok()) << task.status();
    wire::Code block_loops;
    block_loops.mutable_block_loops();
    auto loops = harness().Load(block_loops);
    auto module = harness().Load(*plain);
    ASSERT_TRUE(loops.ok() && module.ok()) << loops.status() << module.status();
    task->mutable_reduce()->set_module(*module);
    *task->mutable_reduce()->mutable_by_blocks() = ops::ReduceByBlocks(code, *loops);
    const absl::Status status = harness().Run(*task);
    ASSERT_TRUE(status.ok()) << status << " " << one.Text();
    EXPECT_EQ(harness().Get(output).buffer, expected.buffer) << "by blocks: " << one.Text();
  }

  void Compare(const Case& one) {
    std::vector<DeviceArray> operands;
    for (const HostArray& array : one.operands) operands.push_back(harness().Put(array));
    auto expected = Apart(one, operands);
    ASSERT_TRUE(expected.ok()) << expected.status() << " " << one.Text();
    auto result = harness().Compute(Together(one), operands);
    ASSERT_TRUE(result.ok()) << result.status() << " " << one.Text();
    const HostArray got = harness().Get(*result);
    ASSERT_EQ(got.info, expected->info) << one.Text();
    EXPECT_EQ(got.buffer, expected->buffer) << one.Text();
    CompareByBlocks(one, operands, *expected);
    harness().Reset();
  }
};

// Fractions whose sums round, so that another order of combination gives other bits; some are
// equal.
HostArray Fractions(DType dtype, std::vector<int64_t> shape, int64_t seed) {
  return Make(dtype, std::move(shape), [dtype, seed](int64_t i) {
    const int64_t number = (i * 7919 + seed * 104729) % 1009;
    if (IsBool(dtype)) return Value(number % 3 == 1);
    if (IsInteger(dtype))
      return Value(static_cast<double>(number % 50 + (IsUnsigned(dtype) ? 0 : -25)));
    const double real = static_cast<double>(number - 504) / 512;
    return IsComplex(dtype) ? Value(real, static_cast<double>(number % 17) / 32) : Value(real);
  });
}

enum class Layout { kWhole, kTurned, kReversed, kSpaced, kRow, kColumn, kMiddle, kNumber };

// An array that broadcasts to `shape`.
HostArray Laid(DType dtype, std::vector<int64_t> shape, Layout layout, int64_t seed) {
  const size_t rank = shape.size();
  switch (layout) {
    case Layout::kTurned:
      if (rank < 2) break;
      std::swap(shape[rank - 1], shape[rank - 2]);
      return Transposed(Fractions(dtype, shape, seed));
    case Layout::kReversed:
      return Reversed(Fractions(dtype, shape, seed),
                      static_cast<int>(seed) % static_cast<int>(rank));
    case Layout::kSpaced:
      shape[rank - 1] *= 2;
      return EverySecond(Fractions(dtype, shape, seed), static_cast<int>(rank) - 1);
    case Layout::kRow:
      return Fractions(dtype, {shape[rank - 1]}, seed);
    case Layout::kColumn:
      shape[rank - 1] = 1;
      return Fractions(dtype, shape, seed);
    case Layout::kMiddle:
      shape[0] = 1;
      if (rank > 2) shape[rank - 1] = 1;
      return Fractions(dtype, shape, seed);
    case Layout::kNumber:
      return Fractions(dtype, {}, seed);
    default:
      break;
  }
  return Fractions(dtype, shape, seed);
}

constexpr R::Function kFunctions[] = {
    R::FUNCTION_SUM,  R::FUNCTION_PROD,   R::FUNCTION_MIN,           R::FUNCTION_MAX,
    R::FUNCTION_MEAN, R::FUNCTION_ANY,    R::FUNCTION_ALL,           R::FUNCTION_ARGMIN,
    R::FUNCTION_NORM, R::FUNCTION_ARGMAX, R::FUNCTION_COUNT_NONZERO, R::FUNCTION_VAR,
    R::FUNCTION_STD};

bool IsIndex(R::Function function) {
  return function == R::FUNCTION_ARGMIN || function == R::FUNCTION_ARGMAX;
}

TEST_F(ComputedTest, EveryFunctionAlongEveryAxis) {
  for (R::Function function : kFunctions) {
    for (const std::vector<int32_t>& axes :
         std::vector<std::vector<int32_t>>{{0}, {1}, {2}, {0, 2}, {}}) {
      if (IsIndex(function) && axes.size() > 1) continue;
      const std::vector<int64_t> shape = {7, 70, 40};
      Case one{.expression = "(a - b) * a",
               .operands = {Laid(DType::kFloat32, shape, Layout::kWhole, 1),
                            Laid(DType::kFloat32, shape, Layout::kRow, 2)},
               .function = function,
               .axes = axes};
      Compare(one);
    }
  }
}

TEST_F(ComputedTest, LongRowsAndColumns) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {300000}, {3, 200000}, {2000, 300}, {9000, 40}, {40, 3, 5000}, {300, 700}}) {
    for (R::Function function :
         {R::FUNCTION_SUM, R::FUNCTION_MEAN, R::FUNCTION_ARGMAX, R::FUNCTION_VAR}) {
      for (int32_t axis : {-1, 0, static_cast<int>(shape.size()) - 1}) {
        Case one{.expression = "square(a - b)",
                 .operands = {Laid(DType::kFloat32, shape, Layout::kWhole, 1),
                              Laid(DType::kFloat32, shape, Layout::kColumn, 2)},
                 .function = function};
        if (axis >= 0) one.axes = {axis};
        Compare(one);
        one.operands[1] = Laid(DType::kFloat32, shape, Layout::kRow, 3);
        Compare(one);
      }
    }
  }
}

TEST_F(ComputedTest, ElementsOfAnotherTypeThanTheArrays) {
  for (DType dtype : {DType::kInt8, DType::kUInt16, DType::kFloat16, DType::kBFloat16,
                      DType::kFloat64, DType::kComplex64, DType::kComplex128, DType::kBool}) {
    for (const char* expression : {"a > 0.25", "a * b", "abs(a) + 0.5", "where(a != b, a, b)"}) {
      if (IsComplex(dtype) && expression[2] == '>') continue;
      for (R::Function function : {R::FUNCTION_SUM, R::FUNCTION_MAX, R::FUNCTION_COUNT_NONZERO}) {
        Case one{.expression = expression,
                 .operands = {Laid(dtype, {50, 333}, Layout::kWhole, 1),
                              Laid(dtype, {50, 333}, Layout::kTurned, 2)},
                 .function = function,
                 .axes = {1}};
        if (std::string(expression).find('b') == std::string::npos ||
            std::string(expression) == "abs(a) + 0.5")
          one.operands.pop_back();
        Compare(one);
      }
    }
  }
}

TEST_F(ComputedTest, RandomLayoutsAndTypes) {
  std::mt19937 random(20261127);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::vector<std::vector<int64_t>> shapes = {
      {5000}, {40, 130}, {130, 20}, {6, 5, 70}, {3, 90, 20}, {2, 4, 3, 33}, {1, 77, 1, 18}, {5, 1}};
  const DType types[] = {DType::kFloat32, DType::kFloat64, DType::kFloat32,  DType::kInt32,
                         DType::kFloat16, DType::kInt8,    DType::kComplex64};
  for (int i = 0; i < 80; ++i) {
    const std::vector<int64_t>& shape = shapes[pick(8)];
    Case one;
    one.expression = pick(2) == 0 ? "(a - b) * c + a" : "maximum(a * 0.5, c) - b";
    const bool alike = pick(2) == 0;
    const DType dtype = types[pick(7)];
    for (int k = 0; k < 3; ++k) {
      // One of the arrays has the whole shape.
      const auto layout = static_cast<Layout>(k == i % 3 ? pick(4) : pick(8));
      one.operands.push_back(Laid(alike ? dtype : types[pick(7)], shape, layout, i + k));
    }
    one.function = kFunctions[pick(11)];
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      if (pick(2) == 0 && (one.axes.empty() || !IsIndex(one.function))) one.axes.push_back(axis);
    }
    one.keep_dims = pick(4) == 0;
    const bool has_nan = one.function != R::FUNCTION_ANY && one.function != R::FUNCTION_ALL &&
                         one.function != R::FUNCTION_COUNT_NONZERO;
    one.skip_nan = has_nan && pick(5) == 0;
    Compare(one);
    if (HasFailure()) return;
  }
}

TEST_F(ComputedTest, EmptyAndSingleElement) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{0}, {4, 0}, {0, 20}, {}, {1}, {1, 1}}) {
    for (R::Function function : {R::FUNCTION_SUM, R::FUNCTION_MEAN, R::FUNCTION_ALL}) {
      Compare(
          {.expression = "a * b + 1",
           .operands = {Fractions(DType::kFloat64, shape, 1), Fractions(DType::kFloat64, {}, 2)},
           .function = function});
    }
  }
}

}  // namespace
}  // namespace stride::conformance
