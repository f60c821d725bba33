#include "tests/support/daemon/device_kind.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/support/daemon/daemon.h"

namespace stride::testing {
namespace {

// As many as any test asks for.
constexpr int kManyCpuDevices = 64;

// Asks a real daemon, which uses what its workers list.
int CountDevices() {
  try {
    Daemon daemon({"--spare-workers=0"}, {.count = kManyCpuDevices});
    Client client = daemon.Connect();
    const auto devices = client.ListDevices();
    if (!devices) throw std::runtime_error(devices.error().ToString());
    return std::count_if(devices->begin(), devices->end(), [](const Device& device) {
      return device.kind == DeviceKind() && device.state == Device::State::kServing;
    });
  } catch (const std::runtime_error& error) {
    // A daemon that finds no device at all does not start.
    std::fprintf(stderr, "looking for devices: %s\n", error.what());
    return 0;
  }
}

class DeviceIsThere : public ::testing::Environment {
  void SetUp() override {
    if (MaxDevices() == 0) GTEST_SKIP() << "no device of kind " << DeviceKind() << " here";
  }
};

const auto* const kDeviceIsThere = ::testing::AddGlobalTestEnvironment(new DeviceIsThere);

}  // namespace

const std::string& DeviceKind() {
  static const std::string& kind = *[] {
    const char* given = std::getenv("STRIDE_TEST_DEVICE_KIND");
    auto* kind = new std::string(given != nullptr ? given : "cpu");
    if (*kind != "cpu" && *kind != "cuda") {
      std::fprintf(stderr, "STRIDE_TEST_DEVICE_KIND is cpu or cuda, not %s\n", kind->c_str());
      std::exit(2);
    }
    return kind;
  }();
  return kind;
}

std::string DeviceName(int index) {
  return "devices/" + DeviceKind() + ":" + std::to_string(index);
}

int MaxDevices() {
  static const int count = OnCpu() ? kManyCpuDevices : CountDevices();
  return count;
}

}  // namespace stride::testing
