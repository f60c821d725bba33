#include "server/base/device_name.h"

#include "gtest/gtest.h"

namespace stride {
namespace {

TEST(DeviceNameTest, NameIsIdOrKindAndIndex) {
  for (const char* asked : {"devices/GPU-4a1c", "GPU-4a1c", "devices/cuda:12", "cuda:12"})
    EXPECT_TRUE(NamesDevice(asked, "GPU-4a1c", "cuda", 12)) << asked;
  for (const char* asked :
       {"", "devices/", "devices/cuda", "cuda:", "cuda:1", "cuda:012", "cuda:123", "cuda:+12",
        "cpu:12", "devices/devices/cuda:12", "GPU-4a1", "12"})
    EXPECT_FALSE(NamesDevice(asked, "GPU-4a1c", "cuda", 12)) << asked;
}

}  // namespace
}  // namespace stride
