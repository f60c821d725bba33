#include "server/worker/cuda/compile/compile_log.h"

#include <gtest/gtest.h>

namespace stride::cuda {
namespace {

TEST(CompileLogTest, KeepsFileNamesAndDropsFolders) {
  EXPECT_EQ(CleanLog("/opt/toolkit/include/cuda_fp16.h(12): error: x\n"),
            "cuda_fp16.h(12): error: x\n");
  EXPECT_EQ(CleanLog("could not open \"/home/a b"), "could not open \"a b");
  EXPECT_EQ(CleanLog("kernel.cu(3): error"), "kernel.cu(3): error");
}

TEST(CompileLogTest, LeavesDivisionsAndCommentsAlone) {
  const std::string text = "  y = a / b; // half/2\n  z = a/b;\n  w = (x) /= 2; /* no */\n";
  EXPECT_EQ(CleanLog(text), text);
}

TEST(CompileLogTest, CutsLongLogs) {
  const std::string clean = CleanLog(std::string(1 << 20, 'x'));
  EXPECT_EQ(clean.size(), size_t{64} << 10);
  EXPECT_NE(clean.find("[log cut here]"), std::string::npos);
}

}  // namespace
}  // namespace stride::cuda
