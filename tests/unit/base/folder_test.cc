#include "server/base/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"

namespace stride {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    std::string pattern = (fs::temp_directory_path() / "folder-XXXXXX").string();
    base_ = mkdtemp(pattern.data());
    fs::create_directory(base_ + "/elsewhere");
    std::ofstream(base_ + "/elsewhere/precious") << "precious";
  }
  ~FolderTest() override { stride::test_support::RemoveFolder(base_); }

  static std::string Text(const absl::Status& status) { return std::string(status.message()); }
  bool PreciousIsThere() const { return fs::file_size(base_ + "/elsewhere/precious") == 8; }

  std::string base_;
};

TEST_F(FolderTest, CreatedFolderIsPrivateToItsOwner) {
  auto root = Folder::MakeRoot(base_ + "/a/b/root");
  ASSERT_TRUE(root.ok()) << root.status();
  auto below = root->Make("below");
  ASSERT_TRUE(below.ok()) << below.status();
  struct stat info;
  for (const char* path : {"/a/b/root", "/a/b/root/below"}) {
    ASSERT_EQ(stat((base_ + path).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u) << path;
  }
  chmod((base_ + "/a/b/root/below").c_str(), 0755);
  ASSERT_TRUE(root->Make("below").ok());
  ASSERT_EQ(stat((base_ + "/a/b/root/below").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u) << "others may no longer read it";
  EXPECT_EQ(root->Open("absent").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FolderTest, FolderWritableByOthersIsRefused) {
  for (mode_t mode : {0777, 0770, 01777, 0702}) {
    const std::string path = base_ + "/open";
    fs::create_directory(path);
    chmod(path.c_str(), mode);
    for (const auto& folder : {Folder::MakeRoot(path).status(), Folder::MakeIn(path).status(),
                               Folder::OpenIn(path).status()}) {
      EXPECT_EQ(folder.code(), absl::StatusCode::kFailedPrecondition) << mode;
      EXPECT_THAT(Text(folder), HasSubstr("chmod go-w " + path));
    }
  }
}

TEST_F(FolderTest, FolderOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const std::string path = base_ + "/theirs";
  fs::create_directory(path);
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  const absl::Status status = Folder::MakeRoot(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("belongs to user 12345"));
}

// The administrator may use links in the path to the state folder, but not below it.
TEST_F(FolderTest, LinksBelowTheFolderAreNotFollowed) {
  fs::create_directory(base_ + "/real");
  fs::create_directory_symlink(base_ + "/real", base_ + "/state");
  auto root = Folder::MakeRoot(base_ + "/state");
  ASSERT_TRUE(root.ok()) << root.status();
  fs::create_directory_symlink(base_ + "/elsewhere", base_ + "/real/link");
  for (const absl::Status& status : {root->Open("link").status(), root->Make("link").status(),
                                     Folder::MakeIn(base_ + "/state/link").status(),
                                     Folder::OpenIn(base_ + "/state/link").status(),
                                     Folder::OpenIn(base_ + "/state/link/").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(Text(status), HasSubstr("symbolic link"));
  }
  fs::create_symlink(base_ + "/elsewhere/precious", base_ + "/real/file");
  for (int flags : {O_RDONLY, O_RDWR, O_WRONLY | O_TRUNC, O_RDWR | O_CREAT}) {
    EXPECT_EQ(root->OpenFile("file", flags).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(root->Remove("file")) << "the link goes";
  EXPECT_TRUE(PreciousIsThere());
}

TEST_F(FolderTest, NamesAreSinglePathComponents) {
  auto root = Folder::MakeRoot(base_ + "/root");
  ASSERT_TRUE(root.ok());
  for (const char* name : {"", ".", "..", "../elsewhere", "a/b", "/etc"}) {
    EXPECT_FALSE(root->OpenFile(name, O_RDONLY).ok()) << name;
    EXPECT_FALSE(root->Make(name).ok()) << name;
    EXPECT_FALSE(root->Remove(name)) << name;
  }
  EXPECT_FALSE(root->Remove("../elsewhere/precious"));
  EXPECT_TRUE(PreciousIsThere());
}

TEST_F(FolderTest, FilesAreCreatedListedRenamedAndRemoved) {
  auto root = Folder::MakeRoot(base_ + "/root");
  ASSERT_TRUE(root.ok());
  ASSERT_TRUE(root->OpenFile("one", O_RDWR | O_CREAT).ok());
  std::string name = "two.";
  auto file = root->MakeFile(&name);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(name.size(), 10u);
  EXPECT_THAT(root->List().value(), UnorderedElementsAre("one", name));
  EXPECT_THAT(root->List().value(), UnorderedElementsAre("one", name)) << "as often as one likes";
  auto below = root->Make("below");
  ASSERT_TRUE(below.ok());
  EXPECT_TRUE(root->Rename(name, *below, "three").ok());
  EXPECT_THAT(below->List().value(), UnorderedElementsAre("three"));
  EXPECT_TRUE(root->Remove("one"));
  EXPECT_FALSE(root->Remove("one"));
  EXPECT_THAT(root->List().value(), UnorderedElementsAre("below"));
  EXPECT_EQ(root->Path().value(), fs::canonical(base_ + "/root"));
  EXPECT_TRUE(root->Sync().ok());
}

}  // namespace
}  // namespace stride
