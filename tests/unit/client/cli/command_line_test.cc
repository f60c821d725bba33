#include "client/cli/command_line.h"

#include <gmock/gmock.h>

#include "client/cli/context.h"

namespace stride::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<OptionSpec> kOptions = {{"output", 'o', "FILE", ""},
                                          {"axis", 0, "N", ""},
                                          {"json", 0, "", ""},
                                          {"address", 0, "ADDRESS", ""}};

Result<CommandLine> Parse(std::vector<std::string> arguments) {
  return CommandLine::Parse(arguments, kOptions);
}

TEST(CommandLineTest, OptionsAreParsedAtAnyPosition) {
  const auto line = Parse({"sum", "--axis", "-1", "x.npy", "--axis=0", "-o", "a", "-ob", "--json"});
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->positionals(), ElementsAre("sum", "x.npy"));
  EXPECT_THAT(line->Values("axis"), ElementsAre("-1", "0"));
  EXPECT_THAT(line->Values("output"), ElementsAre("a", "b"));
  EXPECT_TRUE(line->Has("json"));
  EXPECT_EQ(line->Value("address"), std::nullopt);
}

TEST(CommandLineTest, DashAndNegativeNumbersArePositionals) {
  const auto line = Parse({"-", "-5:int32", "-.5", "--", "--json"});
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->positionals(), ElementsAre("-", "-5:int32", "-.5", "--json"));
}

TEST(CommandLineTest, MistakesAreNamed) {
  EXPECT_THAT(Parse({"--adress", "x"}).error().message, HasSubstr("Did you mean --address?"));
  EXPECT_THAT(Parse({"--axsi=0"}).error().message, HasSubstr("Did you mean --axis?"));
  EXPECT_THAT(Parse({"--banana"}).error().message, HasSubstr("Unknown option --banana"));
  EXPECT_THAT(Parse({"-o"}).error().message, HasSubstr("needs a value"));
  EXPECT_THAT(Parse({"--json=1"}).error().message, HasSubstr("takes no value"));
}

TEST(ParseTimeTest, UnitsAndRefusals) {
  EXPECT_EQ(ParseTime("10"), std::chrono::seconds(10));
  EXPECT_EQ(ParseTime("1.5s"), std::chrono::milliseconds(1500));
  EXPECT_EQ(ParseTime("200ms"), std::chrono::milliseconds(200));
  EXPECT_EQ(ParseTime("2m"), std::chrono::minutes(2));
  for (const char* bad : {"", "s", "-1", "0", "nan", "inf", "1e300", "5 s", "5d"})
    EXPECT_FALSE(ParseTime(bad).has_value()) << bad;
}

}  // namespace
}  // namespace stride::cli
