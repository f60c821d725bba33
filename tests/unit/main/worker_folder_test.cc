#include "server/main/worker_folder.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"

namespace stride {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WorkerFolderTest : public ::testing::Test {
 protected:
  WorkerFolderTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "stride-workers-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(root_ / "bin");
    std::filesystem::create_directories(root_ / "lib" / "stride");
  }
  ~WorkerFolderTest() override { stride::test_support::RemoveFolder(root_); }

  void AddFile(const char* name, mode_t mode) {
    std::ofstream(root_ / name) << "#!/bin/true\n";
    chmod((root_ / name).c_str(), mode);
  }
  absl::StatusOr<std::string> Find() const {
    return FindWorkerFolder(WorkerFoldersOf((root_ / "bin").string()));
  }

  std::filesystem::path root_;
};

TEST_F(WorkerFolderTest, InstalledWorkersAreFoundInLibStride) {
  AddFile("lib/stride/stride-worker-cpu", 0755);
  auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, (root_ / "lib/stride").string());
}

TEST_F(WorkerFolderTest, WorkersNextToTheDaemonTakePrecedence) {
  AddFile("lib/stride/stride-worker-cpu", 0755);
  AddFile("bin/stride-worker-cpu", 0755);
  auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, (root_ / "bin").string());
}

TEST_F(WorkerFolderTest, MissingWorkerNamesEveryFolderSearched) {
  AddFile("bin/stride-worker-cpu", 0644);  // no program
  AddFile("lib/stride/stride-compiler-cpu", 0755);
  const std::string message(Find().status().message());
  EXPECT_THAT(message,
              AllOf(HasSubstr((root_ / "bin").string()), HasSubstr((root_ / "lib/stride").string()),
                    HasSubstr("--worker-dir")));
}

}  // namespace
}  // namespace stride
