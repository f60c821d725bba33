#include "server/metrics/sampler.h"

#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/environment.h"

namespace stride::metrics {
namespace {

constexpr std::string_view kDevicePrefix = "devices/";

std::string IdOf(const v1::Device& device) {
  std::string_view name = device.name();
  if (name.substr(0, kDevicePrefix.size()) == kDevicePrefix)
    name.remove_prefix(kDevicePrefix.size());
  return std::string(name);
}

void SetTime(absl::Time time, v1::DeviceSample* sample) {
  int64_t nanos = absl::ToUnixNanos(time);
  sample->mutable_time()->set_seconds(nanos / 1000000000);
  sample->mutable_time()->set_nanos(static_cast<int32_t>(nanos % 1000000000));
}

}  // namespace

Sampler::Sampler(Sources sources, Host host)
    : sources_(std::move(sources)), host_(std::move(host)), first_times_(host_.ReadCpuTimes()) {}

std::unique_ptr<Watch> Sampler::NewWatch() const {
  return std::unique_ptr<Watch>(new Watch(*this));
}

void Sampler::AddGpu(const std::string& uuid, v1::DeviceSample* sample) const {
  if (!sources_.nvml) return;
  NvmlReading reading = sources_.nvml(uuid);
  if (reading.utilization_ratio) sample->set_utilization_ratio(*reading.utilization_ratio);
  if (reading.memory_utilization_ratio)
    sample->set_memory_utilization_ratio(*reading.memory_utilization_ratio);
  if (reading.memory_used_bytes) sample->set_memory_used_bytes(*reading.memory_used_bytes);
  if (reading.memory_total_bytes) sample->set_memory_total_bytes(*reading.memory_total_bytes);
  if (reading.temperature_celsius) sample->set_temperature_celsius(*reading.temperature_celsius);
  if (reading.power_watts) sample->set_power_watts(*reading.power_watts);
  if (reading.power_limit_watts) sample->set_power_limit_watts(*reading.power_limit_watts);
  if (reading.sm_clock_hertz) sample->set_sm_clock_hertz(*reading.sm_clock_hertz);
  if (reading.memory_clock_hertz) sample->set_memory_clock_hertz(*reading.memory_clock_hertz);
}

void Sampler::AddHost(std::optional<double> utilization, v1::DeviceSample* sample) const {
  if (utilization) sample->set_utilization_ratio(*utilization);
  if (auto memory = host_.ReadMemory()) {
    sample->set_memory_used_bytes(memory->used_bytes);
    sample->set_memory_total_bytes(memory->total_bytes);
  }
  if (auto temperature = host_.ReadTemperatureCelsius())
    sample->set_temperature_celsius(*temperature);
}

std::vector<v1::DeviceSample> Watch::Sample() {
  std::optional<CpuTimes> times = sampler_.host_.ReadCpuTimes();
  if (times && times_) {
    // At short intervals no clock tick may lie between two samples; then the last share is
    // repeated.
    if (auto utilization = Utilization(*times_, *times)) utilization_ = utilization;
  }
  times_ = times;
  std::vector<v1::Device> devices = sampler_.sources_.devices();
  std::vector<v1::DeviceSample> samples = sampler_.sources_.own_account();
  for (size_t i = 0; i < samples.size() && i < devices.size(); ++i) {
    samples[i].set_device(devices[i].name());
    SetTime(WallNow(), &samples[i]);
    if (devices[i].kind() == "cuda") sampler_.AddGpu(IdOf(devices[i]), &samples[i]);
    if (devices[i].kind() == "cpu") sampler_.AddHost(utilization_, &samples[i]);
  }
  return samples;
}

}  // namespace stride::metrics
