#include "client/cli/build_operation.h"

#include <gmock/gmock.h>

#include "client/cpp/src/operation_impl.h"

namespace stride::cli {
namespace {

using ::testing::HasSubstr;

CommandLine Line(std::vector<std::string> arguments) {
  return *CommandLine::Parse(arguments, ReduceOptionSpecs());
}

Result<Operation> Ufunc(std::vector<std::string> arguments) {
  NamedSource source;
  const CommandLine line = Line(arguments);
  return BuildUfunc(line.positionals(), line, source);
}

Result<Operation> Reduce(std::vector<std::string> arguments) {
  NamedSource source;
  const CommandLine line = Line(arguments);
  return BuildReduce(line.positionals(), line, source);
}

TEST(BuildOperationTest, AUfuncByName) {
  const auto operation = Ufunc({"add", "@a", "2.5", "--dtype", "float32"});
  ASSERT_TRUE(operation.ok());
  const auto& ufunc = operation->impl().message.ufunc();
  EXPECT_EQ(ufunc.function(), "add");
  EXPECT_EQ(ufunc.inputs(0).name(), "tenants/default/arrays/a");
  EXPECT_EQ(ufunc.inputs(1).scalar().float_value(), 2.5);
  EXPECT_EQ(ufunc.inputs(1).scalar().data_type(), v1::DATA_TYPE_UNSPECIFIED);
  EXPECT_EQ(ufunc.data_type(), v1::DATA_TYPE_FLOAT32);
}

TEST(BuildOperationTest, AnExpressionByItsNamedInputs) {
  const auto operation = Ufunc({"cos(x)**2 + n", "x=@x", "n=3:int16"});
  ASSERT_TRUE(operation.ok());
  const auto& expression = operation->impl().message.expression();
  EXPECT_EQ(expression.text(), "cos(x)**2 + n");
  EXPECT_EQ(expression.inputs().at("x").name(), "tenants/default/arrays/x");
  EXPECT_EQ(expression.inputs().at("n").scalar().int_value(), 3);
  EXPECT_EQ(expression.inputs().at("n").scalar().data_type(), v1::DATA_TYPE_INT16);
}

TEST(BuildOperationTest, UfuncsOfTwoResults) {
  EXPECT_EQ(Ufunc({"divmod", "@a", "@b"})->num_outputs(), 2);
  EXPECT_EQ(Ufunc({"add", "@a", "@b"})->num_outputs(), 1);
}

TEST(BuildOperationTest, AReduction) {
  const auto operation = Reduce({"mean", "@a", "--axis", "0,-1", "--keepdims"});
  ASSERT_TRUE(operation.ok());
  const auto& reduction = operation->impl().message.reduction();
  EXPECT_EQ(reduction.function(), v1::Reduction::FUNCTION_MEAN);
  EXPECT_THAT(reduction.axes(), ::testing::ElementsAre(0, -1));
  EXPECT_TRUE(reduction.keep_dims());
}

TEST(BuildOperationTest, Mistakes) {
  EXPECT_THAT(Ufunc({}).error().message, HasSubstr("missing"));
  EXPECT_THAT(Ufunc({"x + 1", "@x"}).error().message, HasSubstr("has no name"));
  EXPECT_THAT(Ufunc({"x + 1", "x=@x", "x=@y"}).error().message, HasSubstr("twice"));
  EXPECT_THAT(Ufunc({"add", "out:int32[3]", "@b"}).error().message, HasSubstr("kernels only"));
  EXPECT_THAT(Ufunc({"add", "a.npy", "@b"}).error().message, HasSubstr("outlives"));
  EXPECT_THAT(Ufunc({"add", "@a", "@b", "--dtype", "int33"}).error().message,
              HasSubstr("not a type"));
  EXPECT_THAT(Reduce({"summ", "@a"}).error().message, HasSubstr("No reduction 'summ'"));
  EXPECT_THAT(Reduce({"sum", "@a", "--axis", "x"}).error().message,
              HasSubstr("not a list of axes"));
}

TEST(BuildOperationTest, CommandsFindTheirBuilder) {
  EXPECT_EQ(FindBuilder("matmul"), BuildMatmul);
  EXPECT_EQ(FindBuilder("kernel"), nullptr) << "a launch has results of its own";
}

}  // namespace
}  // namespace stride::cli
