#include "server/worker/cuda/compile/include_check.h"

#include <gtest/gtest.h>

namespace stride::cuda {
namespace {

TEST(CheckIncludesTest, AcceptsHeaders) {
  for (const char* source :
       {"", "#include <stdio.h>\n", "  #  include \"cub/cub.cuh\"\nint include;",
        "int includes = 3; // include /etc/passwd", "#pragma once\n#include<cuda_fp16.h>//x"}) {
    EXPECT_TRUE(CheckIncludes(source).ok()) << source;
  }
}

TEST(CheckIncludesTest, RefusesPaths) {
  for (const char* source :
       {"#include \"/etc/passwd\"", "#include </etc/passwd>", "#include \"../x\"",
        "#include <cub/../../x>", "#inc\\\nlude \"/x\"", "#/* a */include/* b */\"/x\"",
        "%:include \"/x\"", "?\?=include \"/x\"", "#include_next \"/x\"", "#include NAME",
        "#include", "const char* s = R\"x(\" /* )x\";\n#include \"/x\"", "#\\\ninclude \\\n\"/x\"",
        "#define N\n#include N"}) {
    EXPECT_EQ(CheckIncludes(source).code(), absl::StatusCode::kInvalidArgument) << source;
  }
}

}  // namespace
}  // namespace stride::cuda
