#include "server/base/file_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"

namespace stride {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    std::string pattern = (fs::temp_directory_path() / "watch-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    Write("first");
    other_ = folder_ + "/other";
  }
  ~FileWatchTest() override { stride::test_support::RemoveFolder(folder_); }

  std::string path() const { return folder_ + "/file"; }
  void Write(const std::string& text) { std::ofstream(path()) << text; }
  void Append(const std::string& text) { std::ofstream(path(), std::ios::app) << text; }

  std::string folder_, other_;
};

TEST_F(FileWatchTest, ChangeCountsOnceStable) {
  FileWatch watch({path(), other_});
  EXPECT_FALSE(watch.Look());
  Write("second one");
  EXPECT_FALSE(watch.Look());
  EXPECT_TRUE(watch.Look());
  EXPECT_FALSE(watch.Look());
  std::ofstream(other_) << "it comes";
  EXPECT_FALSE(watch.Look());
  EXPECT_TRUE(watch.Look());
  fs::remove(other_);
  EXPECT_FALSE(watch.Look());
  EXPECT_TRUE(watch.Look());
}

// Writes like an editor: truncates the file, then writes in pieces.
TEST_F(FileWatchTest, PartialWritesDoNotCount) {
  FileWatch watch({path()});
  Write("");
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(watch.Look()) << i;
    Append("a line\n");
  }
  EXPECT_FALSE(watch.Look());
  EXPECT_TRUE(watch.Look());
}

TEST_F(FileWatchTest, ModeChangeCounts) {
  FileWatch watch({path()});
  chmod(path().c_str(), 0666);
  EXPECT_FALSE(watch.Look());
  EXPECT_TRUE(watch.Look());
}

// The new content has the same length, and the old modification time is restored.
TEST_F(FileWatchTest, ContentCountsWithUnchangedTime) {
  struct stat before;
  ASSERT_EQ(stat(path().c_str(), &before), 0);
  FileWatch watch({path()});
  // The kernel's file time may not advance for some milliseconds.
  struct stat after = before;
  while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
         after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
    Write("FIRST");
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, path().c_str(), times, 0), 0);
    ASSERT_EQ(stat(path().c_str(), &after), 0);
  }
  EXPECT_FALSE(watch.Look());
  EXPECT_TRUE(watch.Look());
}

TEST_F(FileWatchTest, ChangeDuringReadIsDetected) {
  FileWatch watch({path()});
  watch.BeginRead();
  EXPECT_TRUE(watch.Unchanged());
  Append("more");
  EXPECT_FALSE(watch.Unchanged());
  EXPECT_FALSE(watch.Look());
  EXPECT_TRUE(watch.Look());
  EXPECT_TRUE(watch.Unchanged());
}

TEST_F(FileWatchTest, PollsOnItsOwnThread) {
  FileWatch watch({path()});
  absl::Notification changed;
  watch.Start(absl::Milliseconds(1), [&] {
    if (!changed.HasBeenNotified()) changed.Notify();
  });
  Write("second one");
  changed.WaitForNotification();
  watch.Stop();
}

}  // namespace
}  // namespace stride
