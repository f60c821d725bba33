// Which kind of device the suites run on: $STRIDE_TEST_DEVICE_KIND, `cpu` when it is not set. On a
// machine without such a device every test is skipped, and says so.
#pragma once

#include <string>

#include "gtest/gtest.h"

namespace stride::testing {

// `cpu` or `cuda`. Any other value ends the program.
const std::string& DeviceKind();
inline bool OnCpu() { return DeviceKind() == "cpu"; }

// As replies tell it: `devices/cpu:1`, `devices/GPU-...`.
std::string DeviceName(int index);

// How many devices of the kind a daemon can have here: CPU devices are made, others counted.
int MaxDevices();

}  // namespace stride::testing

// For a test that shows nothing on fewer devices.
#define STRIDE_NEEDS_DEVICES(count)                                                             \
  if (::stride::testing::MaxDevices() < (count))                                                \
  GTEST_SKIP() << "needs " << (count) << " " << ::stride::testing::DeviceKind() << " devices, " \
               << ::stride::testing::MaxDevices() << " here"

// For a test of what only that kind does; `why` says what another does.
#define STRIDE_NEEDS_CPU(why) \
  if (!::stride::testing::OnCpu()) GTEST_SKIP() << "of the CPU device alone: " << (why)
