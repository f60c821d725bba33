#include "server/ops/compiler_options.h"

#include <gtest/gtest.h>

#include "server/base/error.h"

namespace stride::ops {
namespace {

absl::Status CheckOne(const std::string& option) {
  google::protobuf::RepeatedPtrField<std::string> options;
  *options.Add() = option;
  return CheckCompilerOptions(options, "source.options");
}

TEST(CompilerOptionsTest, AcceptsDocumentedOptions) {
  for (const char* option : {"-DA", "-DA=1", "-DA=a b/c\"d\"", "-D_x9=", "-UA", "-std=c++17",
                             "--std=c++20", "--use_fast_math", "-use_fast_math", "--fmad=false",
                             "-O0", "-O3", "--maxrregcount=32", "-lineinfo"}) {
    EXPECT_TRUE(CheckOne(option).ok()) << option;
  }
}

TEST(CompilerOptionsTest, RefusesFilesAndUnknownOptions) {
  for (const char* option : {"",
                             "-",
                             "-I/etc",
                             "-I",
                             "--include-path=/etc",
                             "-include",
                             "--pre-include=/etc/passwd",
                             "--create-pch=/tmp/x",
                             "--use-pch=/tmp/x",
                             "--pch",
                             "-pch-dir=/tmp",
                             "@/etc/passwd",
                             "--options-file=/etc/passwd",
                             "-load",
                             "-fplugin=/tmp/x.so",
                             "-Xclang",
                             "-mllvm",
                             "-o/tmp/x",
                             "-MD",
                             "-MF/tmp/x",
                             "-emit-pch",
                             "-ivfsoverlay",
                             "-isysroot/",
                             "-fmodules",
                             "-save-temps",
                             "--time=/tmp/x",
                             "-D",
                             "-D=1",
                             "-D1",
                             "-DA\n-I/etc",
                             "-DA=1\n",
                             "-U",
                             "-U1",
                             "-UA B",
                             "-std=gnu++17",
                             "-O4",
                             "-O33",
                             "--maxrregcount=",
                             "--maxrregcount=1234",
                             "/etc/passwd",
                             " -DA"}) {
    EXPECT_EQ(ReasonOf(CheckOne(option)), v1::ERROR_REASON_OPTION_NOT_ALLOWED) << option;
  }
  EXPECT_FALSE(CheckOne("-DA=" + std::string(600, 'x')).ok());
}

TEST(CompilerOptionsTest, NumberOfOptionsIsBounded) {
  google::protobuf::RepeatedPtrField<std::string> options;
  for (int i = 0; i < 65; ++i) *options.Add() = "-DA";
  EXPECT_EQ(ReasonOf(CheckCompilerOptions(options, "o")), v1::ERROR_REASON_SIZE_LIMIT);
}

}  // namespace
}  // namespace stride::ops
