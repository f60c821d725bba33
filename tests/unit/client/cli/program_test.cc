// The stride program as users run it, on a private fake daemon.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "client/npy/reader.h"
#include "client/npy/writer.h"
#include "tests/support/await.h"
#include "tests/support/temporary_folder.h"

namespace stride::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Outcome {
  int code = -1;
  std::string out, err;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    std::string name = "/tmp/program.XXXXXX";
    folder_ = mkdtemp(name.data());
    // Private daemons create their folders here, and no daemon listens at the default address.
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    setenv("STRIDE_DAEMON", STRIDE_FAKE_DAEMON, 1);
    unsetenv("STRIDE_ADDRESS");
  }
  ~ProgramTest() override { stride::test_support::RemoveFolder(folder_); }

  std::string Path(const std::string& name) { return folder_ / name; }

  Outcome Run(const std::string& arguments) {
    const std::string command =
        std::string(STRIDE_PROGRAM) + " " + arguments + " >" + Path("out") + " 2>" + Path("err");
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), ReadFile(Path("out")), ReadFile(Path("err"))};
  }

  std::string Save(const std::string& name, const std::vector<int32_t>& values) {
    auto writer =
        npy::Writer::Create(Path(name), {DataType::kInt32, {static_cast<int64_t>(values.size())}});
    std::memcpy(writer->data().data(), values.data(), values.size() * sizeof(int32_t));
    EXPECT_TRUE(writer->Commit().ok());
    return Path(name);
  }

  // Folders of private daemons that still exist.
  int NumPrivate() {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_))
      count += entry.path().filename().string().starts_with("stride.");
    return count;
  }

  fs::path folder_;
};

TEST_F(ProgramTest, OneCommandComputesAResult) {
  const std::string a = Save("a.npy", {1, 2, 3});
  const auto outcome = Run("ufunc add " + a + " " + a + " -o " + Path("c.npy"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "");
  const auto c = npy::Reader::Open(Path("c.npy"));
  ASSERT_TRUE(c.ok());
  int32_t values[3];
  std::memcpy(values, c->data().data(), sizeof(values));
  EXPECT_THAT(values, ::testing::ElementsAre(2, 4, 6));
  EXPECT_EQ(NumPrivate(), 0);
}

TEST_F(ProgramTest, PrintsAndPipes) {
  const std::string a = Save("a.npy", {1, 2, 3});
  EXPECT_EQ(Run("ufunc add " + a + " " + a).out, "2 4 6\n");
  EXPECT_EQ(Run("ufunc add " + a + " - <" + a).out, "2 4 6\n");
  EXPECT_THAT(Run("ufunc add " + a + " " + a + " --json").out, HasSubstr("\"data\":[2,4,6]"));
  EXPECT_THAT(Run("ufunc add " + a + " " + a + " --time").err, HasSubstr("devices/cpu:0:  put"));
  ASSERT_EQ(Run("ufunc add " + a + " " + a + " -o -").code, 0);
  fs::rename(Path("out"), Path("piped.npy"));
  EXPECT_TRUE(npy::Reader::Open(Path("piped.npy")).ok());
}

TEST_F(ProgramTest, ExitCodesFollowDaemonErrors) {
  const std::string a = Save("a.npy", {1});
  const auto unknown = Run("ufunc ad " + a + " " + a + " -o " + Path("c.npy"));
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("UNKNOWN_FUNCTION"));
  EXPECT_FALSE(fs::exists(Path("c.npy")));
  EXPECT_EQ(Run("ufunc add none.npy none.npy").code, 5);
  EXPECT_EQ(NumPrivate(), 0);
  EXPECT_EQ(Run("devices --address unix:" + Path("none")).code, 14);
  const auto put = Run("put " + a);
  EXPECT_EQ(put.code, 14);
  EXPECT_THAT(put.err, HasSubstr("needs one that stays"));
}

TEST_F(ProgramTest, DaemonDeathIsReported) {
  setenv("STRIDE_DAEMON", "/bin/false", 1);
  const auto outcome = Run("devices");
  EXPECT_EQ(outcome.code, 14);
  EXPECT_THAT(outcome.err, HasSubstr("ended at once"));
  EXPECT_EQ(NumPrivate(), 0);
}

TEST_F(ProgramTest, TyposGetSuggestions) {
  const auto command = Run("ufnuc");
  EXPECT_EQ(command.code, 3);
  EXPECT_THAT(command.err, HasSubstr("Did you mean stride ufunc?"));
  EXPECT_THAT(Run("devices --jsno").err, HasSubstr("Did you mean --json?"));
  EXPECT_THAT(Run("jobs sumbit").err, HasSubstr("Did you mean submit?"));
  EXPECT_EQ(Run("--help").code, 0);
  for (const char* name : {"devices", "top", "put", "get", "ls", "rm", "ufunc", "reduce", "matmul",
                           "kernel", "jobs", "doctor"}) {
    EXPECT_THAT(Run(std::string("help ") + name).out,
                HasSubstr(std::string("Usage: stride ") + name));
  }
}

TEST_F(ProgramTest, InterruptStopsTheDaemonCleanly) {
  const pid_t pid = fork();
  if (pid == 0) {
    freopen("/dev/null", "w", stdout);
    execl(STRIDE_PROGRAM, "stride", "top", "--interval", "1s", nullptr);
    _exit(127);
  }
  AWAIT(!(NumPrivate() == 0 && waitpid(pid, nullptr, WNOHANG) == 0));
  kill(pid, SIGINT);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(NumPrivate(), 0);
}

}  // namespace
}  // namespace stride::cli
