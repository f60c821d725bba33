#include "client/cli/argument.h"

#include <gmock/gmock.h>

namespace stride::cli {
namespace {

using ::testing::HasSubstr;
using Kind = Argument::Kind;

Argument Parsed(const std::string& text) {
  auto argument = ParseArgument(text);
  EXPECT_TRUE(argument.ok()) << text << ": " << argument.error().message;
  return *argument;
}

TEST(ArgumentTest, DistinguishesKinds) {
  EXPECT_EQ(Parsed("x.npy").kind, Kind::kFile);
  EXPECT_EQ(Parsed("-").kind, Kind::kFile);
  EXPECT_EQ(Parsed("./5").kind, Kind::kFile);
  EXPECT_EQ(Parsed("dir/a:b.npy").kind, Kind::kFile);
  EXPECT_EQ(Parsed("@w").text, "tenants/default/arrays/w");
  EXPECT_EQ(Parsed("@tenants/t/arrays/w").text, "tenants/t/arrays/w");
  EXPECT_EQ(Parsed("inout:x.npy").kind, Kind::kInOut);
  EXPECT_EQ(Parsed("inout:x.npy").text, "x.npy");
}

TEST(ArgumentTest, ParsesNumbers) {
  EXPECT_EQ(std::get<int64_t>(Parsed("4096").number), 4096);
  EXPECT_EQ(std::get<int64_t>(Parsed("-5").number), -5);
  EXPECT_EQ(std::get<uint64_t>(Parsed("18446744073709551615").number), 18446744073709551615u);
  EXPECT_EQ(std::get<double>(Parsed("2.5").number), 2.5);
  EXPECT_EQ(std::get<double>(Parsed("1e-3").number), 1e-3);
  EXPECT_EQ(std::get<bool>(Parsed("true").number), true);
  EXPECT_EQ(Parsed("4096").data_type, DataType::kUnspecified);
  const Argument typed = Parsed("4096:int32");
  EXPECT_EQ(typed.kind, Kind::kNumber);
  EXPECT_EQ(std::get<int64_t>(typed.number), 4096);
  EXPECT_EQ(typed.data_type, DataType::kInt32);
  EXPECT_EQ(Parsed("3:float32").data_type, DataType::kFloat32);
  EXPECT_EQ(std::get<int64_t>(Parsed("-9223372036854775808:int64").number), INT64_MIN);
}

TEST(ArgumentTest, ParsesOutputs) {
  EXPECT_EQ(Parsed("out:int32[4096]").spec, (ArraySpec{DataType::kInt32, {4096}}));
  EXPECT_EQ(Parsed("out:float32[3,4]").spec, (ArraySpec{DataType::kFloat32, {3, 4}}));
  EXPECT_EQ(Parsed("out:complex128[]").spec, (ArraySpec{DataType::kComplex128, {}}));
}

TEST(ArgumentTest, RefusesInvalidArguments) {
  struct Row {
    std::string text, message;
  };
  for (const Row& row :
       {Row{"", "empty"}, Row{"@", "needs an array's name"}, Row{"inout:", "needs a file"},
        Row{"out:int32", "with a shape"}, Row{"out:int23[4]", "Did you mean int32"},
        Row{"out:int32[4", "with a shape"}, Row{"out:int32[-4]", "not a list of sizes"},
        Row{"out:int32[4,]", "not a list of sizes"}, Row{"out:int32[4.5]", "not a list of sizes"},
        Row{"out:int64[9223372036854775807]", "larger than memory"},
        Row{"5:flaot32", "Did you mean float32"}, Row{"300:uint8", "cannot hold"},
        Row{"-1:uint8", "cannot hold"}, Row{"2.5:int32", "cannot hold"},
        Row{"9223372036854775808:int64", "cannot hold"}}) {
    const auto argument = ParseArgument(row.text);
    ASSERT_FALSE(argument.ok()) << row.text;
    EXPECT_THAT(argument.error().message, HasSubstr(row.message));
    EXPECT_EQ(argument.error().code, Code::kInvalidArgument);
  }
}

TEST(ArgumentTest, ParsesNamedInputs) {
  EXPECT_EQ(SplitNamedInput("x=x.npy"), std::make_pair(std::string("x"), std::string("x.npy")));
  EXPECT_EQ(SplitNamedInput("x_1=a=b"), std::make_pair(std::string("x_1"), std::string("a=b")));
  EXPECT_FALSE(SplitNamedInput("x.npy").has_value());
  EXPECT_FALSE(SplitNamedInput("=x").has_value());
  EXPECT_FALSE(SplitNamedInput("1x=x.npy").has_value());
  EXPECT_FALSE(SplitNamedInput("dir/x=1.npy").has_value());
}

}  // namespace
}  // namespace stride::cli
