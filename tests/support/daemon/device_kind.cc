#include "tests/support/daemon/device_kind.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "tests/support/daemon/daemon.h"

namespace stride::testing {
namespace {

// The maximum that any test requests.
constexpr int kManyCpuDevices = 64;

// Queries a real daemon, which uses the devices listed by its workers.
std::vector<std::string> FindDevices() {
  std::vector<std::string> names;
  try {
    Daemon daemon({"--spare-workers=0"}, {.count = kManyCpuDevices});
    Client client = daemon.Connect();
    const auto devices = client.ListDevices();
    if (!devices) throw std::runtime_error(devices.error().ToString());
    for (const Device& device : *devices) {
      if (device.kind == DeviceKind() && device.state == Device::State::kServing)
        names.push_back(device.name);
    }
  } catch (const std::runtime_error& error) {
    // A daemon without any device does not start.
    std::fprintf(stderr, "looking for devices: %s\n", error.what());
  }
  return names;
}

// Devices that are found rather than created.
const std::vector<std::string>& FoundDevices() {
  static const auto* names = new std::vector<std::string>(FindDevices());
  return *names;
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
  if (OnCpu()) return "devices/cpu:" + std::to_string(index);
  return FoundDevices().at(index);
}

int MaxDevices() { return OnCpu() ? kManyCpuDevices : static_cast<int>(FoundDevices().size()); }

}  // namespace stride::testing
