// The kind of device under test: $STRIDE_TEST_DEVICE_KIND, `cpu` if unset. On a machine without
// such a device every test is skipped with a message.
#pragma once

#include <string>

#include "gtest/gtest.h"

namespace stride::testing {

// `cpu` or `cuda`. Any other value ends the program.
const std::string& DeviceKind();
inline bool OnCpu() { return DeviceKind() == "cpu"; }

// The names in responses: `devices/cpu:1`, `devices/GPU-...`.
std::string DeviceName(int index);

// The number of devices of the kind available to a daemon here: CPU devices are created, others
// counted.
int MaxDevices();

}  // namespace stride::testing

// For a test that is meaningless on fewer devices.
#define STRIDE_NEEDS_DEVICES(count)                                                             \
  if (::stride::testing::MaxDevices() < (count))                                                \
  GTEST_SKIP() << "needs " << (count) << " " << ::stride::testing::DeviceKind() << " devices, " \
               << ::stride::testing::MaxDevices() << " here"

// For a test of behaviour specific to that kind; `why` describes that of others.
#define STRIDE_NEEDS_CPU(why) \
  if (!::stride::testing::OnCpu()) GTEST_SKIP() << "of the CPU device alone: " << (why)
