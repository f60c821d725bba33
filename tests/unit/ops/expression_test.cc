#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/expression_parser.h"
#include "server/ops/fold.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::Array;
using testing::CountOps;
using testing::ExpressionOf;
using ::testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

absl::StatusOr<Plan> PlanText(const std::string& text, DType x = DType::kFloat32,
                              DType y = DType::kFloat32) {
  return PlanOperation(ExpressionOf(text, {"x", "y"}), {Array(x, {10}), Array(y, {10})}, {});
}

// The tree in prefix form.
std::string Prefix(const ExpressionTree& tree, int i) {
  const ExpressionNode& node = tree[i];
  if (node.kind == ExpressionNode::Kind::kNumber) return "#";
  std::string text = node.name;
  if (!node.arguments.empty()) {
    text += "(";
    for (int child : node.arguments) text += Prefix(tree, child) + " ";
    text.back() = ')';
  }
  return text;
}

std::string Parsed(const std::string& text) {
  auto tree = ParseExpression(text);
  if (!tree.ok()) return MessageOf(tree.status());
  return Prefix(*tree, static_cast<int>(tree->size()) - 1);
}

TEST(ExpressionParser, PrecedenceFollowsPython) {
  EXPECT_EQ(Parsed("a + b * c"), "add(a multiply(b c))");
  EXPECT_EQ(Parsed("-a ** b"), "negative(power(a b))");
  EXPECT_EQ(Parsed("a ** -b ** c"), "power(a negative(power(b c)))");
  EXPECT_EQ(Parsed("a - b - c"), "subtract(subtract(a b) c)");
  EXPECT_EQ(Parsed("a | b ^ c & d << e + f"),
            "bitwise_or(a bitwise_xor(b bitwise_and(c left_shift(d add(e f)))))");
  EXPECT_EQ(Parsed("a < b & c"), "less(a bitwise_and(b c))");
  EXPECT_EQ(Parsed("~a // b % c"), "remainder(floor_divide(invert(a) b) c)");
  EXPECT_EQ(Parsed("where(a, f(b), (c))"), "where(a f(b) c)");
  EXPECT_EQ(Parsed("1e3 + .5 + 0x1F + 2j + 1.e-2"), "add(add(add(add(# #) #) #) #)");
}

TEST(ExpressionParser, ErrorReportsPosition) {
  EXPECT_THAT(Parsed("a + "), HasSubstr("ends too soon; at byte 4"));
  EXPECT_THAT(Parsed("a + * b"), HasSubstr("unexpected `*` at byte 4"));
  EXPECT_THAT(Parsed("(a"), HasSubstr("at byte 2"));
  EXPECT_THAT(Parsed("f(a,)"), HasSubstr("unexpected `)` at byte 4"));
  EXPECT_THAT(Parsed("a < b < c"), HasSubstr("chained"));
  EXPECT_THAT(Parsed("a and b"), HasSubstr("`and` is not supported"));
  EXPECT_THAT(Parsed("1x"), HasSubstr("unexpected `x` at byte 1"));
  EXPECT_THAT(Parsed("a $ b"), HasSubstr("unexpected `$` at byte 2"));
  EXPECT_THAT(Parsed("99999999999999999999"), HasSubstr("64 bits"));
  EXPECT_THAT(Parsed("a b"), HasSubstr("unexpected `b` at byte 2"));
  EXPECT_THAT(Parsed(std::string("a + \x01", 5)), HasSubstr("unexpected byte at byte 4"));
}

TEST(ExpressionParser, SizeAndDepthAreBounded) {
  EXPECT_EQ(ReasonOf(ParseExpression(std::string(200000, '(')).status()),
            v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(ReasonOf(ParseExpression(std::string(60000, '(')).status()),
            v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(ReasonOf(ParseExpression(std::string(60000, '-') + "a").status()),
            v1::ERROR_REASON_SIZE_LIMIT);
  std::string powers = "a", sums = "a";
  for (int i = 0; i < 5000; ++i) powers += "**a";
  for (int i = 0; i < 5000; ++i) sums += "+a";
  EXPECT_EQ(ReasonOf(ParseExpression(powers).status()), v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(ReasonOf(ParseExpression(sums).status()), v1::ERROR_REASON_SIZE_LIMIT);
}

TEST(Fold, FoldingFollowsPython) {
  auto fold = [](const char* op, int64_t a, int64_t b) {
    return Fold(op, {Integer{a}, Integer{b}});
  };
  EXPECT_EQ(std::get<Integer>(*fold("floor_divide", -7, 2)), -4);
  EXPECT_EQ(std::get<Integer>(*fold("remainder", -7, 2)), 1);
  EXPECT_EQ(std::get<Integer>(*fold("remainder", 7, -2)), -1);
  EXPECT_EQ(std::get<double>(*fold("divide", 1, 4)), 0.25);
  EXPECT_EQ(std::get<Integer>(*fold("power", 3, 4)), 81);
  EXPECT_EQ(std::get<double>(*fold("power", 2, -1)), 0.5);
  EXPECT_FALSE(fold("divide", 1, 0));
  EXPECT_FALSE(fold("power", 10, 40));
  EXPECT_FALSE(fold("less", 1, 2));
}

TEST(Expression, SharesSubexpressionsAndMultiplies) {
  auto plan = PlanText("cos(x)**2 + sin(x)**2");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const wire::ScalarProgram& program = plan->code->elementwise().program();
  EXPECT_EQ(CountOps(program, "power"), 0);
  EXPECT_EQ(CountOps(program, "multiply"), 2);
  EXPECT_EQ(CountOps(program), 5);
  EXPECT_EQ(plan->code->elementwise().input_dtypes_size(), 1);
  plan = PlanText("exp(x + y) * exp(x + y)");
  EXPECT_EQ(CountOps(plan->code->elementwise().program()), 3);
}

TEST(Expression, ConstantsAreLaunchScalarsSoThatCodeIsShared) {
  auto one = PlanText("1.05 * where(x > 0, x, 1.67 * exp(x) - 1.67)");
  auto two = PlanText("1.06 * where(x > 1, x, 1.68 * exp(x) - 1.68)");
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(one->code->SerializeAsString(), two->code->SerializeAsString());
  EXPECT_NE(one->task.SerializeAsString(), two->task.SerializeAsString());
  EXPECT_EQ(one->outputs[0].dtype, DType::kFloat32);
}

TEST(Expression, TypesFollowNumPy) {
  EXPECT_EQ(PlanText("2 * x", DType::kInt8)->outputs[0].dtype, DType::kInt8);
  EXPECT_EQ(PlanText("2 * pi * x", DType::kFloat16)->outputs[0].dtype, DType::kFloat16);
  EXPECT_EQ(PlanText("x / 2", DType::kInt8)->outputs[0].dtype, DType::kFloat64);
  EXPECT_EQ(PlanText("sqrt(2) * x")->outputs[0].dtype, DType::kFloat64);
  EXPECT_EQ(PlanText("x * 1j")->outputs[0].dtype, DType::kComplex64);
  EXPECT_EQ(PlanText("x > 300", DType::kUInt8)->outputs[0].dtype, DType::kBool);
  EXPECT_EQ(PlanText("True + x", DType::kUInt8)->outputs[0].dtype, DType::kUInt8);
  EXPECT_EQ(ReasonOf(PlanText("x + 300", DType::kUInt8).status()), v1::ERROR_REASON_INVALID_FIELD);
  EXPECT_EQ(ReasonOf(PlanText("x ** -1", DType::kInt32).status()), v1::ERROR_REASON_INVALID_FIELD);
  EXPECT_EQ(ReasonOf(PlanText("x & y").status()), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
}

TEST(Expression, ErrorsNameUnknownNames) {
  EXPECT_THAT(MessageOf(PlanText("cosin(x)").status()), HasSubstr("did you mean cos?"));
  EXPECT_EQ(ReasonOf(PlanText("cosin(x)").status()), v1::ERROR_REASON_UNKNOWN_FUNCTION);
  EXPECT_THAT(MessageOf(PlanText("x + z").status()), HasSubstr("no input has this name"));
  EXPECT_THAT(MessageOf(PlanText("x + sin").status()), HasSubstr("must be called"));
  EXPECT_EQ(ReasonOf(PlanText("divmod(x, y)").status()), v1::ERROR_REASON_NOT_IMPLEMENTED);
  EXPECT_EQ(ReasonOf(PlanText("sin(x, y)").status()), v1::ERROR_REASON_ARGUMENT_COUNT);
}

TEST(Expression, InputsKeepTheirSlotsByName) {
  v1::Operation operation = ExpressionOf("b - a", {"b", "a"});
  const OperationView view(operation);
  ASSERT_EQ(view.operands().size(), 2u);
  EXPECT_EQ(view.OperandPath(0), "expression.inputs[a]");
  auto plan =
      PlanOperation(operation, {Array(DType::kInt8, {3, 1}), Array(DType::kInt16, {4})}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->outputs[0].shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(plan->task.elementwise().inputs(0).arena(), 1u);
  EXPECT_EQ(plan->task.elementwise().inputs(1).arena(), 0u);
  EXPECT_EQ(plan->task.elementwise().outputs(0).arena(), 2u);
}

}  // namespace
}  // namespace stride::ops
