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

TEST(BuildOperationTest, UfuncByName) {
  const auto operation = Ufunc({"add", "@a", "2.5", "--dtype", "float32"});
  ASSERT_TRUE(operation.ok());
  const auto& ufunc = operation->impl().message.ufunc();
  EXPECT_EQ(ufunc.function(), "add");
  EXPECT_EQ(ufunc.inputs(0).name(), "tenants/default/arrays/a");
  EXPECT_EQ(ufunc.inputs(1).scalar().float_value(), 2.5);
  EXPECT_EQ(ufunc.inputs(1).scalar().data_type(), v1::DATA_TYPE_UNSPECIFIED);
  EXPECT_EQ(ufunc.data_type(), v1::DATA_TYPE_FLOAT32);
}

TEST(BuildOperationTest, ExpressionByNamedInputs) {
  const auto operation = Ufunc({"cos(x)**2 + n", "x=@x", "n=3:int16"});
  ASSERT_TRUE(operation.ok());
  const auto& expression = operation->impl().message.expression();
  EXPECT_EQ(expression.text(), "cos(x)**2 + n");
  EXPECT_EQ(expression.inputs().at("x").name(), "tenants/default/arrays/x");
  EXPECT_EQ(expression.inputs().at("n").scalar().int_value(), 3);
  EXPECT_EQ(expression.inputs().at("n").scalar().data_type(), v1::DATA_TYPE_INT16);
}

TEST(BuildOperationTest, UfuncsWithTwoResults) {
  EXPECT_EQ(Ufunc({"divmod", "@a", "@b"})->num_outputs(), 2);
  EXPECT_EQ(Ufunc({"add", "@a", "@b"})->num_outputs(), 1);
}

TEST(BuildOperationTest, ReductionOptions) {
  const auto operation = Reduce({"mean", "@a", "--axis", "0,-1", "--keepdims"});
  ASSERT_TRUE(operation.ok());
  const auto& reduction = operation->impl().message.reduction();
  EXPECT_EQ(reduction.function(), v1::Reduction::FUNCTION_MEAN);
  EXPECT_THAT(reduction.axes(), ::testing::ElementsAre(0, -1));
  EXPECT_TRUE(reduction.keep_dims());
}

TEST(BuildOperationTest, MistakesAreRefused) {
  EXPECT_THAT(Ufunc({}).error().message, HasSubstr("missing"));
  EXPECT_THAT(Ufunc({"x + 1", "@x"}).error().message, HasSubstr("has no name"));
  EXPECT_THAT(Ufunc({"x + 1", "x=@x", "x=@y"}).error().message, HasSubstr("twice"));
  EXPECT_THAT(Ufunc({"add", "out:int32[3]", "@b"}).error().message, HasSubstr("kernels only"));
  EXPECT_THAT(Ufunc({"add", "a.npy", "@b"}).error().message, HasSubstr("outlives"));
  EXPECT_THAT(Ufunc({"add", "@a", "@b", "--dtype", "int33"}).error().message,
              HasSubstr("not a type"));
  EXPECT_THAT(Reduce({"summ", "@a"}).error().message, HasSubstr("No reduction 'summ'"));
  EXPECT_THAT(Reduce({"sum", "@a", "--axis", "x"}).error().message,
              HasSubstr("not a list of whole numbers"));
}

Result<Operation> Build(const std::string& command, std::vector<std::string> arguments) {
  NamedSource source;
  const CommandLine line = *CommandLine::Parse(arguments, BuilderOptionSpecs());
  return FindBuilder(command)(line.positionals(), line, source);
}

v1::Operation Built(const std::string& command, std::vector<std::string> arguments) {
  const auto operation = Build(command, std::move(arguments));
  EXPECT_TRUE(operation.ok()) << (operation.ok() ? "" : operation.error().message);
  return operation.ok() ? operation->impl().message : v1::Operation();
}

TEST(BuildOperationTest, ArrayOperations) {
  EXPECT_EQ(ArrayOperations().size(), kNumArrayOperations);
  EXPECT_EQ(Built("sort", {"@a", "--axis", "-2", "--descending"}).sort().axis(), -2);
  EXPECT_FALSE(Built("sort", {"@a"}).sort().has_axis());
  const auto scan = Built("accumulate", {"add", "@a", "--reverse", "--dtype", "int64"});
  EXPECT_EQ(scan.accumulation().function(), "add");
  EXPECT_TRUE(scan.accumulation().reverse());
  EXPECT_EQ(scan.accumulation().data_type(), v1::DATA_TYPE_INT64);
  const auto take = Built("take", {"@a", "@i", "--axis", "1", "--mode", "clip"});
  EXPECT_EQ(take.gather().indices(0).name(), "tenants/default/arrays/i");
  EXPECT_EQ(take.gather().mode(), v1::INDEX_MODE_CLIP);
  EXPECT_EQ(Built("topk", {"5", "@a", "--smallest"}).top_k().k(), 5);
  EXPECT_EQ(Build("topk", {"5", "@a"})->num_outputs(), 2);
  const auto bins = Built("histogram", {"@a", "--range", "-1,2.5", "--bins", "7"});
  EXPECT_EQ(bins.histogram().uniform().count(), 7);
  EXPECT_EQ(bins.histogram().uniform().low(), -1);
  EXPECT_EQ(bins.histogram().uniform().high(), 2.5);
  EXPECT_TRUE(Built("histogram", {"@a", "@e", "--weights", "@w"}).histogram().has_weights());
  EXPECT_EQ(Built("linalg", {"svd", "@a", "--full"}).linalg().function(), v1::Linalg::FUNCTION_SVD);
  EXPECT_EQ(Build("linalg", {"svd", "@a"})->num_outputs(), 3);
  EXPECT_EQ(Built("linalg", {"solve", "@a", "@b"}).linalg().operands_size(), 2);
  const auto fft = Built("fft", {"@a", "--real", "--axis", "0,1", "--length", "8,16"});
  EXPECT_EQ(fft.fft().kind(), v1::Fft::KIND_REAL_TO_COMPLEX);
  EXPECT_THAT(fft.fft().lengths(), ::testing::ElementsAre(8, 16));
  const auto random = Built("random", {"float32[3,4]", "--normal", "1,2", "--key", "9"});
  EXPECT_EQ(random.creation().random().key(), 9);
  EXPECT_EQ(random.creation().random().normal().deviation(), 2);
}

TEST(BuildOperationTest, MistakesOfArrayOperationsAreRefused) {
  EXPECT_THAT(Build("sort", {"@a", "--axis", "0,1"}).error().message, HasSubstr("one axis"));
  EXPECT_THAT(Build("topk", {"many", "@a"}).error().message, HasSubstr("not how many"));
  EXPECT_THAT(Build("histogram", {"@a"}).error().message, HasSubstr("--range"));
  EXPECT_THAT(Build("histogram", {"@a", "--range", "3"}).error().message, HasSubstr("two numbers"));
  EXPECT_THAT(Build("linalg", {"inverse", "@a"}).error().message, HasSubstr("No 'inverse'"));
  EXPECT_THAT(Build("take", {"@a", "@i", "--mode", "bounce"}).error().message,
              HasSubstr("raise, wrap or clip"));
  EXPECT_THAT(Build("random", {"float32[3]", "--bits", "--normal", "0,1"}).error().message,
              HasSubstr("One distribution"));
}

TEST(BuildOperationTest, CommandsFindTheirBuilder) {
  EXPECT_EQ(FindBuilder("matmul"), BuildMatmul);
  EXPECT_EQ(FindBuilder("kernel"), nullptr) << "a launch has results of its own";
}

}  // namespace
}  // namespace stride::cli
