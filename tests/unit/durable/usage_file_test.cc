#include "server/durable/usage_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stride::durable {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class UsageFileTest : public ::testing::Test {
 protected:
  UsageFileTest() {
    std::string pattern = (fs::temp_directory_path() / "usage-XXXXXX").string();
    base_ = mkdtemp(pattern.data());
    fs::create_directory(base_ + "/elsewhere");
    std::ofstream(base_ + "/elsewhere/precious") << "precious";
    Reopen();
  }
  ~UsageFileTest() override { fs::remove_all(base_); }

  // Opens the file like another process, after this one's end.
  void Reopen() {
    file_.reset();
    auto file = UsageFile::Open(state());
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
  }
  std::string state() const { return base_ + "/state"; }
  std::string path() const { return state() + "/usage"; }
  std::string Bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Replace(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
  }
  bool PreciousIsThere() const { return fs::file_size(base_ + "/elsewhere/precious") == 8; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(state()))
      names.push_back(entry.path().filename());
    return names;
  }

  std::string base_;
  std::unique_ptr<UsageFile> file_;
};

TEST_F(UsageFileTest, ReadReturnsTheLatestWrite) {
  EXPECT_EQ(file_->Read().status().code(), absl::StatusCode::kNotFound);
  for (const std::string& content :
       {std::string("one"), std::string(), std::string(1 << 20, '\xff'), std::string("a\0b", 3)}) {
    ASSERT_TRUE(file_->Write(content).ok());
    Reopen();
    auto read = file_->Read();
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, content);
  }
  struct stat info;
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_THAT(Names(), UnorderedElementsAre("usage", "usage.lock"));
}

TEST_F(UsageFileTest, AnyDamageIsDetected) {
  ASSERT_TRUE(file_->Write("some content").ok());
  const std::string good = Bytes();
  for (size_t size = 0; size < good.size(); ++size) {
    Replace(good.substr(0, size));
    EXPECT_EQ(file_->Read().status().code(), absl::StatusCode::kDataLoss) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    Replace(changed);
    EXPECT_EQ(file_->Read().status().code(), absl::StatusCode::kDataLoss) << at;
  }
  Replace(good + "x");
  EXPECT_EQ(file_->Read().status().code(), absl::StatusCode::kDataLoss);
  Replace(good);
  EXPECT_TRUE(file_->Read().ok());
}

TEST_F(UsageFileTest, OversizedFileIsNotRead) {
  ASSERT_TRUE(file_->Write("x").ok());
  ASSERT_EQ(truncate(path().c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(file_->Read().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(file_->Write(std::string(UsageFile::kMaxBytes + 1, 'x')).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(UsageFileTest, OnlyARegularFileIsRead) {
  fs::create_directory(path());
  EXPECT_FALSE(file_->Read().ok());
  fs::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(file_->Read().ok());  // and the open does not wait for a writer
}

TEST_F(UsageFileTest, LinksAreNotFollowed) {
  ASSERT_TRUE(file_->Write("good").ok());
  fs::rename(path(), base_ + "/elsewhere/good");
  fs::create_symlink(base_ + "/elsewhere/good", path());
  EXPECT_EQ(file_->Read().status().code(), absl::StatusCode::kFailedPrecondition);
  fs::remove(path());
  for (const char* name : {"/usage", "/usage.tmp"})
    fs::create_symlink(base_ + "/elsewhere/precious", state() + name);
  ASSERT_TRUE(file_->Write("mine").ok());
  EXPECT_TRUE(PreciousIsThere());
  EXPECT_FALSE(fs::is_symlink(path()));
  EXPECT_EQ(*file_->Read(), "mine");
  fs::remove(state() + "/usage.lock");
  fs::create_symlink(base_ + "/elsewhere/precious", state() + "/usage.lock");
  file_.reset();
  EXPECT_EQ(UsageFile::Open(state()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(PreciousIsThere());
}

TEST_F(UsageFileTest, SetAsideKeepsTheContent) {
  Replace("another program's");
  auto aside = file_->SetAside();
  ASSERT_TRUE(aside.ok()) << aside.status();
  EXPECT_THAT(*aside, StartsWith(path() + ".damaged-"));
  EXPECT_EQ(fs::file_size(*aside), 17u);
  EXPECT_EQ(file_->Read().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(UsageFileTest, SecondProcessIsRefused) {
  const absl::Status status = UsageFile::Open(state()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another process"));
}

TEST_F(UsageFileTest, FailedWriteKeepsTheOlderContent) {
  ASSERT_TRUE(file_->Write("older").ok());
  fs::create_directories(state() + "/usage.tmp/x");
  EXPECT_FALSE(file_->Write("newer").ok());
  EXPECT_EQ(*file_->Read(), "older");
}

}  // namespace
}  // namespace stride::durable
