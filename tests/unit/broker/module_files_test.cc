#include "server/broker/module_files.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"

namespace stride::broker {
namespace {

namespace fs = std::filesystem;

class ModuleFilesTest : public ::testing::Test {
 protected:
  ModuleFilesTest() {
    std::string pattern = (fs::temp_directory_path() / "modules-XXXXXX").string();
    base_ = mkdtemp(pattern.data());
    folder_ = base_ + "/cache";
    fs::create_directory(base_ + "/elsewhere");
    std::ofstream(base_ + "/elsewhere/precious.module") << "precious";
  }
  ~ModuleFilesTest() override { stride::test_support::RemoveFolder(base_); }
  bool PreciousIsThere() const { return fs::file_size(base_ + "/elsewhere/precious.module") == 8; }

  std::string base_, folder_;
};

TEST_F(ModuleFilesTest, ALinkInThePlaceOfTheFolderIsNotFollowed) {
  fs::create_directory_symlink(base_ + "/elsewhere", folder_);
  ModuleFiles files(folder_, 1);
  EXPECT_TRUE(files.Write("key", {}, "object").ok()) << "nothing is kept";
  EXPECT_FALSE(files.Read("key").has_value());
  EXPECT_FALSE(files.Read("precious").has_value());
  EXPECT_TRUE(PreciousIsThere());
  EXPECT_FALSE(fs::exists(base_ + "/elsewhere/key.module"));
}

TEST_F(ModuleFilesTest, ALinkInThePlaceOfAFileIsNotFollowed) {
  ModuleFiles files(folder_, 1 << 20);
  fs::create_symlink(base_ + "/elsewhere/precious.module", folder_ + "/key.module");
  EXPECT_FALSE(files.Read("key").has_value());
  ASSERT_TRUE(files.Write("key", {}, "object").ok());
  EXPECT_EQ(files.Read("key")->object, "object");
  EXPECT_TRUE(PreciousIsThere());
}

TEST_F(ModuleFilesTest, OnlyFilesOfOursMakeRoom) {
  ModuleFiles files(folder_, 1000);
  std::ofstream(folder_ + "/notes.txt") << std::string(5000, 'x');
  std::ofstream(folder_ + "/old.module.abcdef") << std::string(5000, 'x');  // was being written
  fs::create_symlink(base_ + "/elsewhere/precious.module", folder_ + "/link.module");
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(files.Write("key" + std::to_string(i), {}, std::string(600, 'o')).ok());
  EXPECT_TRUE(fs::exists(folder_ + "/notes.txt"));
  EXPECT_FALSE(fs::exists(folder_ + "/old.module.abcdef"));
  EXPECT_FALSE(files.Read("key0").has_value());
  EXPECT_TRUE(PreciousIsThere());
}

}  // namespace
}  // namespace stride::broker
