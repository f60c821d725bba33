#include "server/metrics/nvml.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>
#include <utility>

namespace stride::metrics {
namespace {

// The few declarations of nvml.h that are used; its ABI is stable by name and version suffix.
using Result = int;
using Device = void*;
constexpr Result kSuccess = 0;
constexpr Result kTimeout = 10;
constexpr int kTemperatureGpu = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int64_t kHertzPerMegahertz = 1000000;

struct Utilization {
  unsigned int gpu;     // percent
  unsigned int memory;  // percent
};

// Unlike the first version, it does not count memory reserved by the driver (half a gigabyte on an
// H100) as used.
struct Memory {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
constexpr unsigned int kMemoryVersion = sizeof(Memory) | (2u << 24);

using EventSet = void*;
constexpr unsigned long long kXidEvent = 8;

struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;  // the XID
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

}  // namespace

struct Nvml::Library {
  ~Library() {
    if (handle == nullptr) return;
    if (events != nullptr) event_set_free(events);
    if (started) shutdown();
    dlclose(handle);
  }

  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(handle, name));
  }

  bool Load() {
    handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    Find("nvmlInit_v2", &init);
    Find("nvmlShutdown", &shutdown);
    Find("nvmlErrorString", &error_string);
    Find("nvmlDeviceGetHandleByUUID", &handle_by_uuid);
    Find("nvmlDeviceGetUtilizationRates", &utilization_rates);
    Find("nvmlDeviceGetMemoryInfo_v2", &memory_info);
    Find("nvmlDeviceGetTemperature", &temperature);
    Find("nvmlDeviceGetPowerUsage", &power_usage);
    Find("nvmlDeviceGetEnforcedPowerLimit", &power_limit);
    Find("nvmlDeviceGetClockInfo", &clock_info);
    Find("nvmlEventSetCreate", &event_set_create);
    Find("nvmlEventSetFree", &event_set_free);
    Find("nvmlEventSetWait_v2", &event_set_wait);
    Find("nvmlDeviceRegisterEvents", &register_events);
    return init != nullptr && shutdown != nullptr && handle_by_uuid != nullptr;
  }

  void* handle = nullptr;
  bool started = false;
  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  const char* (*error_string)(Result) = nullptr;
  Result (*handle_by_uuid)(const char*, Device*) = nullptr;
  Result (*utilization_rates)(Device, Utilization*) = nullptr;
  Result (*memory_info)(Device, Memory*) = nullptr;
  Result (*temperature)(Device, int, unsigned int*) = nullptr;
  Result (*power_usage)(Device, unsigned int*) = nullptr;
  Result (*power_limit)(Device, unsigned int*) = nullptr;
  Result (*clock_info)(Device, int, unsigned int*) = nullptr;
  Result (*event_set_create)(EventSet*) = nullptr;
  Result (*event_set_free)(EventSet) = nullptr;
  Result (*event_set_wait)(EventSet, EventData*, unsigned int milliseconds) = nullptr;
  Result (*register_events)(Device, unsigned long long types, EventSet) = nullptr;
  EventSet events = nullptr;
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Nvml::~Nvml() = default;

std::unique_ptr<Nvml> Nvml::Open(std::string* reason) {
  auto library = std::make_unique<Library>();
  if (!library->Load()) {
    *reason = "no usable libnvidia-ml.so.1: no NVIDIA driver is installed";
    return nullptr;
  }
  if (Result result = library->init(); result != kSuccess) {
    const char* text = library->error_string == nullptr ? "" : library->error_string(result);
    *reason = std::string("NVML does not start: ") + text;
    return nullptr;
  }
  library->started = true;
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

void* Nvml::HandleOf(const std::string& uuid) {
  std::lock_guard lock(mutex_);
  auto it = handles_.find(uuid);
  if (it != handles_.end()) return it->second;
  Device device = nullptr;
  if (library_->handle_by_uuid(uuid.c_str(), &device) != kSuccess) return nullptr;
  handles_[uuid] = device;
  return device;
}

bool NeedsReset(uint64_t xid) {
  switch (xid) {
    case 48:   // uncorrectable memory error
    case 62:   // its power controller halted
    case 64:   // a bad page or row could not be retired
    case 79:   // the GPU is no longer reachable on the bus
    case 95:   // uncontained uncorrectable memory error
    case 119:  // the GPU system processor does not answer
    case 120:  // or has failed
    case 140:  // unrecovered memory error
    case 143:  // it does not start
      return true;
    default:
      return false;
  }
}

bool Nvml::CollectErrors(const std::vector<std::string>& uuids) {
  Library& nvml = *library_;
  bool can = nvml.event_set_create != nullptr && nvml.event_set_free != nullptr &&
             nvml.event_set_wait != nullptr && nvml.register_events != nullptr;
  if (!can || nvml.events != nullptr || nvml.event_set_create(&nvml.events) != kSuccess)
    return false;
  bool some = false;
  for (const std::string& uuid : uuids) {
    Device device = HandleOf(uuid);
    some |= device != nullptr && nvml.register_events(device, kXidEvent, nvml.events) == kSuccess;
  }
  return some;
}

std::optional<DriverError> Nvml::NextError(int milliseconds) {
  EventData event{};
  Result result = library_->event_set_wait(library_->events, &event, milliseconds);
  // Sleep after an immediate failure, so that the caller's loop is not busy.
  if (result != kSuccess && result != kTimeout)
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  if (result != kSuccess || event.type != kXidEvent) return std::nullopt;
  std::lock_guard lock(mutex_);
  for (const auto& [uuid, device] : handles_) {
    if (device == event.device) return DriverError{uuid, event.data};
  }
  return std::nullopt;
}

NvmlReading Nvml::Read(const std::string& uuid) {
  NvmlReading reading;
  Device device = HandleOf(uuid);
  if (device == nullptr) return reading;
  const Library& nvml = *library_;
  Utilization utilization{};
  if (nvml.utilization_rates != nullptr &&
      nvml.utilization_rates(device, &utilization) == kSuccess) {
    reading.utilization_ratio = utilization.gpu / 100.0;
    reading.memory_utilization_ratio = utilization.memory / 100.0;
  }
  Memory memory{};
  memory.version = kMemoryVersion;
  if (nvml.memory_info != nullptr && nvml.memory_info(device, &memory) == kSuccess) {
    reading.memory_used_bytes = static_cast<int64_t>(memory.used);
    reading.memory_total_bytes = static_cast<int64_t>(memory.total);
  }
  unsigned int value = 0;
  if (nvml.temperature != nullptr &&
      nvml.temperature(device, kTemperatureGpu, &value) == kSuccess) {
    reading.temperature_celsius = value;
  }
  if (nvml.power_usage != nullptr && nvml.power_usage(device, &value) == kSuccess) {
    reading.power_watts = value / 1000.0;
  }
  if (nvml.power_limit != nullptr && nvml.power_limit(device, &value) == kSuccess) {
    reading.power_limit_watts = value / 1000.0;
  }
  if (nvml.clock_info != nullptr && nvml.clock_info(device, kClockSm, &value) == kSuccess) {
    reading.sm_clock_hertz = value * kHertzPerMegahertz;
  }
  if (nvml.clock_info != nullptr && nvml.clock_info(device, kClockMemory, &value) == kSuccess) {
    reading.memory_clock_hertz = value * kHertzPerMegahertz;
  }
  return reading;
}

}  // namespace stride::metrics
