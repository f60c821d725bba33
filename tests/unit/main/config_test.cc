#include "server/main/command_line.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/option_table.h"
#include "tests/support/temporary_folder.h"

namespace stride {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::vector<std::string>& arguments) {
  return std::string(ParseCommandLine(arguments).status().message());
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "stride-config-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~FileTest() override { stride::test_support::RemoveFolder(folder_); }
  std::string Flag(const std::string& content) {
    std::ofstream(folder_ / "c") << content;
    return "--config=" + (folder_ / "c").string();
  }
  std::filesystem::path folder_;
};

TEST(ConfigTest, FlagsAreParsedInEverySpelling) {
  auto invocation =
      ParseCommandLine({"--listen=unix:/a", "--listen", "tcp:127.0.0.1:0", "--insecure",
                        "--no-cuda=false", "--drain-timeout=1m30s", "--cpu-devices=2x1,0",
                        "--parent-pid", "7", "--log-format=json", "--device-memory-share=0.5"});
  ASSERT_TRUE(invocation.ok()) << invocation.status();
  const Config& config = invocation->config;
  EXPECT_THAT(config.listen, ElementsAre("unix:/a", "tcp:127.0.0.1:0"));
  EXPECT_TRUE(config.insecure);
  EXPECT_FALSE(config.no_cuda);
  EXPECT_EQ(config.drain_timeout, absl::Seconds(90));
  EXPECT_THAT(config.cpu_devices, ElementsAre(1, 1, 0));
  EXPECT_EQ(config.parent_pid, 7);
  EXPECT_EQ(config.log_format, LogFormat::kJson);
  EXPECT_DOUBLE_EQ(config.device_memory_share, 0.5);
}

TEST(ConfigTest, MistakesAreExplained) {
  EXPECT_THAT(ErrorOf({"--lisen=x"}), HasSubstr("did you mean listen?"));
  EXPECT_THAT(ErrorOf({"--zebra"}), HasSubstr("unknown option: zebra"));
  EXPECT_THAT(ErrorOf({"serve"}), HasSubstr("not a flag"));
  EXPECT_THAT(ErrorOf({"--listen"}), HasSubstr("needs a value"));
  EXPECT_THAT(ErrorOf({"--insecure=yes"}), HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf({"--max-threads=1"}), HasSubstr("from 8"));
  EXPECT_THAT(ErrorOf({"--drain-timeout=30"}), HasSubstr("30s"));
  EXPECT_THAT(ErrorOf({"--log-level=loud"}), HasSubstr("debug, info"));
  EXPECT_THAT(ErrorOf({"--config=/nonexistent/file"}), HasSubstr("cannot read"));
  for (const char* bad : {"", "x", "2x", "x1", "-1", "0x1", "100x1", "1,,1", "99999"}) {
    EXPECT_FALSE(ParseCpuDevices(bad).ok()) << bad;
  }
}

TEST(ConfigTest, HelpNamesEveryOption) {
  std::string help = HelpText();
  for (const Option& option : Options()) EXPECT_THAT(help, HasSubstr("--" + option.name));
  EXPECT_EQ(ParseCommandLine({"--help"})->command, Command::kHelp);
  EXPECT_EQ(ParseCommandLine({"--version"})->command, Command::kVersion);
}

TEST_F(FileTest, FlagsWinOverTheFile) {
  std::string file = Flag(
      "# comment\n\nlisten = unix:/file\nlisten=unix:/file2\n  log-level = debug \ninsecure = "
      "true\nstate-dir = /a=b\n");
  auto from_file = ParseCommandLine({file});
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  EXPECT_THAT(from_file->config.listen, ElementsAre("unix:/file", "unix:/file2"));
  EXPECT_EQ(from_file->config.log_level, "debug");
  EXPECT_EQ(from_file->config.state_dir, "/a=b");
  auto both = ParseCommandLine({"--listen=unix:/flag", file, "--log-level=error"});
  ASSERT_TRUE(both.ok());
  EXPECT_THAT(both->config.listen, ElementsAre("unix:/flag"));
  EXPECT_EQ(both->config.log_level, "error");
  EXPECT_TRUE(both->config.insecure);
}

TEST_F(FileTest, MistakesNameTheLine) {
  EXPECT_THAT(ErrorOf({Flag("listen = unix:/a\nlog_level = debug\n")}),
              HasSubstr("line 2: unknown option: log_level; did you mean log-level?"));
  EXPECT_THAT(ErrorOf({Flag("listen\n")}), HasSubstr("line 1"));
  EXPECT_THAT(ErrorOf({Flag("max-queued = many\n")}), HasSubstr("max-queued must be"));
}

std::string ReadExample() {
  std::ifstream file(STRIDE_EXAMPLE_CONFIG);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(ExampleConfigTest, ExampleParsesUnchanged) {
  auto assignments = ParseConfigFile(ReadExample());
  ASSERT_TRUE(assignments.ok()) << assignments.status();
  Config config;
  EXPECT_TRUE(Assign(*assignments, &config).ok());
}

// Every key appears as `#key = value` with a valid value, and no other key does.
TEST(ExampleConfigTest, DocumentsEveryKeyWithAValidValue) {
  std::string text = ReadExample();
  std::string uncommented;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    bool assignment = line.size() > 1 && line[0] == '#' && line[1] != ' ' &&
                      line.find(" = ") != std::string::npos;
    uncommented += (assignment ? line.substr(1) : line) + "\n";
    begin = end + 1;
  }
  auto assignments = ParseConfigFile(uncommented);
  ASSERT_TRUE(assignments.ok()) << assignments.status();
  Config config;
  absl::Status status = Assign(*assignments, &config);
  EXPECT_TRUE(status.ok()) << status;
  std::set<std::string> keys;
  for (const auto& [key, value] : *assignments) keys.insert(key);
  for (const Option& option : Options()) EXPECT_EQ(keys.count(option.name), 1u) << option.name;
}

TEST(ConfigTest, DefaultSocketIsInTheRuntimeFolder) {
  setenv("RUNTIME_DIRECTORY", "/run/stride-test:/run/other", 1);
  EXPECT_THAT(DefaultAddresses(),
              ElementsAre("unix:/run/stride-test/stride.sock", "tcp:127.0.0.1:7433"));
  unsetenv("RUNTIME_DIRECTORY");
  setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(DefaultAddresses()[0], "unix:/run/user/7/stride.sock");
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(DefaultAddresses()[0], "unix:/run/stride/stride.sock");
}

}  // namespace
}  // namespace stride
