#include "tests/support/fake_devices.h"

#include "absl/strings/str_cat.h"

namespace stride::testing {

FakeDevices::FakeDevices() {
  for (int i = 0; i < 2; ++i) {
    v1::Device device;
    device.set_name(absl::StrCat("devices/cpu:", i));
    device.set_kind("cpu");
    device.set_index(i);
    device.set_state(v1::Device::STATE_SERVING);
    devices_.push_back(device);
  }
}

void FakeDevices::SetName(int device, const std::string& name) {
  std::lock_guard lock(mutex_);
  devices_[device].set_name(name);
}

void FakeDevices::SetState(int device, v1::Device::State state) {
  std::lock_guard lock(mutex_);
  devices_[device].set_state(state);
}

std::vector<v1::Device> FakeDevices::List() {
  std::lock_guard lock(mutex_);
  return devices_;
}

std::vector<v1::DeviceSample> FakeDevices::Sample() {
  std::vector<v1::DeviceSample> samples(2);
  samples[0].set_arena_bytes(1000);
  samples[1].set_queue_depth(3);
  return samples;
}

}  // namespace stride::testing
