#include "server/worker/cuda/compile/compile_options.h"

#include <gtest/gtest.h>

namespace stride::cuda {
namespace {

TEST(CompileOptionsTest, AcceptsTheAllowList) {
  const std::vector<std::string> options = {"-DN=4",        "-DMAX(a,b)=((a)>(b)?(a):(b))",
                                            "-DFLAG",       "-UFLAG",
                                            "--std=c++17",  "-std=c++20",
                                            "-lineinfo",    "--use_fast_math",
                                            "--fmad=false", "--maxrregcount=64"};
  auto translated = TranslateOptions(options);
  ASSERT_TRUE(translated.ok()) << translated.status();
  EXPECT_EQ(*translated, options);
}

TEST(CompileOptionsTest, AcceptsCommonNvrtcOptions) {
  auto translated =
      TranslateOptions({"-default-device", "--device-as-default-execution-space", "-w", "-ftz=true",
                        "--prec-div=false", "--prec-sqrt=true", "--restrict"});
  ASSERT_TRUE(translated.ok()) << translated.status();
  EXPECT_EQ(*translated, (std::vector<std::string>{
                             "--device-as-default-execution-space",
                             "--device-as-default-execution-space", "--disable-warnings",
                             "-ftz=true", "--prec-div=false", "--prec-sqrt=true", "--restrict"}));
}

TEST(CompileOptionsTest, OmitsOptionsWithoutEffect) {
  auto translated = TranslateOptions(
      {"-G", "--device-debug", "-dc", "--expt-relaxed-constexpr", "--extended-lambda"});
  ASSERT_TRUE(translated.ok()) << translated.status();
  EXPECT_TRUE(translated->empty());
}

TEST(CompileOptionsTest, MapsOptimisationLevels) {
  auto translated = TranslateOptions({"-O1"});
  ASSERT_TRUE(translated.ok());
  EXPECT_EQ(translated->at(0), "--ptxas-options=-O1");
}

class RefusedOptionTest : public testing::TestWithParam<const char*> {};
TEST_P(RefusedOptionTest, OptionIsRefusedByName) {
  auto translated = TranslateOptions({GetParam()});
  EXPECT_EQ(translated.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(translated.status().message().find(GetParam()), absl::string_view::npos);
}
INSTANTIATE_TEST_SUITE_P(All, RefusedOptionTest,
                         testing::Values("--create-pch=/tmp/x", "-I/etc", "--include-path=/",
                                         "-include=/etc/passwd", "--pre-include=x", "-D", "-D1A",
                                         "-D=3", "-DA=1\n#include \"x\"", "-UA B", "--std=c++03",
                                         "--gpu-architecture=sm_50", "-O4", "--maxrregcount=-1",
                                         "--maxrregcount=9999", "--fmad=maybe",
                                         "--ftz=", "-default-device=1", "kernel.cu", "", "-",
                                         "--ptxas-options=-v", "-fdevice-time-trace=x",
                                         "--use_fast_math=/x"));

}  // namespace
}  // namespace stride::cuda
