#include "server/store/spill_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"

namespace stride::store {
namespace {

class SpillFileTest : public ::testing::Test {
 protected:
  SpillFileTest() : folder_(absl::StrCat(::testing::TempDir(), "/spill-file-", getpid())) {}
  ~SpillFileTest() override { stride::test_support::RemoveFolder(folder_); }
  const std::string folder_;
};

TEST_F(SpillFileTest, FolderIsPrivateAndCleanedUp) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/spill-abc123") << "left by a crash";
  std::ofstream(folder_ + "/notes") << "of somebody else";
  ASSERT_TRUE(PrepareSpillFolder(folder_).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/spill-abc123"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes"));
  struct stat info;
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(SpillFileTest, FileIsReservedAndUnnamed) {
  ASSERT_TRUE(PrepareSpillFolder(folder_).ok());
  auto fd = CreateSpillFile(folder_, 100000);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  struct stat info;
  ASSERT_EQ(fstat(fd->get(), &info), 0);
  EXPECT_EQ(info.st_size, 100000);
  EXPECT_GE(info.st_blocks * 512, 100000) << "a full disk must show now, not later";
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(CheckSpillFile(fd->get(), 100000).ok());
  EXPECT_FALSE(CheckSpillFile(fd->get(), 100001).ok());
}

TEST_F(SpillFileTest, WrittenBytesAreReadBack) {
  ASSERT_TRUE(PrepareSpillFolder(folder_).ok());
  auto fd = CreateSpillFile(folder_, 1000);
  ASSERT_TRUE(fd.ok()) << fd.status();
  std::vector<std::byte> in(500, std::byte{7}), out(500);
  ASSERT_TRUE(WriteAt(fd->get(), 300, in.data(), in.size()).ok());
  ASSERT_TRUE(ReadAt(fd->get(), 300, out.data(), out.size()).ok());
  EXPECT_EQ(in, out);
  EXPECT_EQ(ReadAt(fd->get(), 600, out.data(), out.size()).code(), absl::StatusCode::kDataLoss);
}

TEST_F(SpillFileTest, NamedFilesAndNonFilesAreRefused) {
  ASSERT_TRUE(PrepareSpillFolder(folder_).ok());
  std::ofstream(folder_ + "/named") << std::string(100, 'x');
  UniqueFd named(open((folder_ + "/named").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(CheckSpillFile(named.get(), 10).ok());
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  EXPECT_FALSE(CheckSpillFile(read_end.get(), 0).ok());
}

TEST_F(SpillFileTest, NoFolderMeansNoFile) {
  EXPECT_FALSE(CreateSpillFile(folder_ + "/absent", 10).ok());
}

}  // namespace
}  // namespace stride::store
