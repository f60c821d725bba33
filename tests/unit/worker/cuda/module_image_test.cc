#include "server/worker/cuda/driver/module_image.h"

#include <gtest/gtest.h>

#include <string>

#include "server/worker/cuda/compile/cubin_info.h"

namespace stride::cuda {
namespace {

TEST(ModuleImageTest, DetectsKinds) {
  EXPECT_EQ(ImageKindOf("\x7f"
                        "ELF..."),
            ImageKind::kCubin);
  EXPECT_EQ(ImageKindOf("\x50\xed\x55\xba...."), ImageKind::kFatbin);
  EXPECT_EQ(ImageKindOf(".version 8.0"), ImageKind::kPtx);
  EXPECT_EQ(ImageKindOf(""), ImageKind::kPtx);
}

TEST(ModuleImageTest, RefusesTruncatedImages) {
  const std::string elf = std::string(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  EXPECT_FALSE(CheckImage(elf).ok());
  EXPECT_FALSE(ReadCubin(elf).ok());
  std::string fatbin("\x50\xed\x55\xba\x01\x00\x10\x00\xff\x00\x00\x00\x00\x00\x00\x00", 16);
  EXPECT_FALSE(CheckImage(fatbin).ok());
  fatbin[8] = 0;
  EXPECT_TRUE(CheckImage(fatbin).ok());
  EXPECT_FALSE(CheckImage(std::string("text\0text", 9)).ok());
}

}  // namespace
}  // namespace stride::cuda
