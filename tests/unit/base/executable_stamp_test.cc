#include "server/base/executable_stamp.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace stride {
namespace {

namespace fs = std::filesystem;

class ExecutableStampTest : public ::testing::Test {
 protected:
  ExecutableStampTest()
      : file_(fs::path(::testing::TempDir()) / absl::StrCat("executable_stamp_", getpid())) {}
  ~ExecutableStampTest() override { fs::remove(file_); }

  const fs::path file_;
};

TEST_F(ExecutableStampTest, CopyHasTheSameStamp) {
  EXPECT_EQ(ExecutableStamp(), ExecutableStamp("/proc/self/exe"));
  fs::copy_file("/proc/self/exe", file_);
  EXPECT_EQ(ExecutableStamp(file_), ExecutableStamp()) << "whatever its time";
}

TEST_F(ExecutableStampTest, FileWithoutBuildIdUsesSizeAndTime) {
  std::ofstream(file_) << "#!/bin/sh\n";
  const std::string stamp = ExecutableStamp(file_);
  EXPECT_EQ(ExecutableStamp(file_), stamp);
  std::ofstream(file_, std::ios::app) << "exit\n";
  EXPECT_NE(ExecutableStamp(file_), stamp);
}

// Arbitrary bytes, truncated programs, and offsets beyond the end.
TEST_F(ExecutableStampTest, BrokenProgramsHaveAStamp) {
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string head(4096, '\0');
  own.read(head.data(), static_cast<std::streamsize>(head.size()));
  for (size_t size : {1u, 16u, 63u, 64u, 100u, 500u, 4096u}) {
    std::string broken = head.substr(0, size);
    if (size > 40) broken[33] = '\x7f';  // the offset of the program headers
    std::ofstream(file_, std::ios::trunc | std::ios::binary) << broken;
    EXPECT_FALSE(ExecutableStamp(file_).empty()) << size;
  }
}

}  // namespace
}  // namespace stride
