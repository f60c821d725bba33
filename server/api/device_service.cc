#include "server/api/device_service.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "server/api/serve.h"
#include "server/base/descriptors.h"
#include "server/base/device_name.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/page_size.h"

namespace stride::api {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(1);
constexpr absl::Duration kShortestInterval = absl::Milliseconds(50);
constexpr absl::Duration kLongestInterval = absl::Hours(1);

absl::StatusOr<absl::Duration> IntervalOf(const v1::WatchDevicesRequest& request) {
  if (!request.has_interval()) return kDefaultInterval;
  absl::Duration interval =
      absl::Seconds(request.interval().seconds()) + absl::Nanoseconds(request.interval().nanos());
  if (interval >= kShortestInterval && interval <= kLongestInterval) return interval;
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "interval", "must be from 50 ms to 1 hour",
                      {{"value", absl::FormatDuration(interval)}});
}

}  // namespace

absl::Status DeviceServiceAdapter::List(const v1::ListDevicesRequest& request,
                                        v1::ListDevicesResponse* response) {
  auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  int64_t begin = 0;
  if (!request.page_token().empty() &&
      (!absl::SimpleAtoi(request.page_token(), &begin) || begin < 0)) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "page_token",
                        "not a token of this service");
  }
  std::vector<v1::Device> devices = devices_->List();
  int64_t count = static_cast<int64_t>(devices.size());
  int64_t end = std::min(count, std::min(begin, count) + *page_size);
  for (int64_t i = begin; i < end; ++i) *response->add_devices() = std::move(devices[i]);
  if (end < count) response->set_next_page_token(std::to_string(end));
  v1::DaemonLimits* limits = response->mutable_limits();
  limits->set_descriptors(max_descriptors_);
  limits->set_open_descriptors(OpenDescriptors());
  limits->set_connections(max_connections_);
  limits->set_workers(devices_->MostWorkers());
  return absl::OkStatus();
}

absl::StatusOr<v1::Device> DeviceServiceAdapter::Find(const std::string& name) {
  for (v1::Device& device : devices_->List()) {
    if (NamesDevice(name, device.name(), device.kind(), device.index())) return std::move(device);
  }
  return NotFound(v1::ERROR_REASON_DEVICE_NOT_FOUND, "device", name);
}

absl::Status DeviceServiceAdapter::Watch(Call& call, const v1::WatchDevicesRequest& request,
                                         ResponseWriter* writer) {
  auto interval = IntervalOf(request);
  if (!interval.ok()) return interval.status();
  if (request.max_samples() < 0) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "max_samples", "must not be negative");
  }
  std::set<std::string> names;
  for (const std::string& name : request.names()) {
    auto device = Find(name);
    if (!device.ok()) return device.status();
    names.insert(device->name());
  }
  std::unique_ptr<metrics::Watch> watch = sampler_->NewWatch();
  SteadyTime next = Now();
  for (int64_t sample = 1;; ++sample) {
    v1::WatchDevicesResponse response;
    for (v1::DeviceSample& reading : watch->Sample()) {
      if (names.empty() || names.count(reading.device()) > 0)
        *response.add_samples() = std::move(reading);
    }
    // A slow reader blocks here: samples are skipped, never queued.
    if (!writer->Write(response)) return call.EndOfWait();
    if (sample == request.max_samples()) return absl::OkStatus();
    next = std::max(next + *interval, Now());
    if (!call.Sleep(next - Now())) return call.stopping() ? StoppingError() : call.EndOfWait();
  }
}

void DeviceServiceAdapter::AddMethods() {
  Unary<v1::ListDevicesRequest, v1::ListDevicesResponse>(
      "DeviceService/ListDevices", kControlRequest,
      [this](Call& call, const auto& request, auto* response) { return List(request, response); });
  Unary<v1::GetDeviceRequest, v1::GetDeviceResponse>(
      "DeviceService/GetDevice", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(Find(request.name()), response->mutable_device());
      });
  Responses<v1::WatchDevicesRequest>(
      "DeviceService/WatchDevices", kControlRequest,
      [this](Call& call, const auto& request, ResponseWriter* writer) {
        return Watch(call, request, writer);
      });
}

}  // namespace stride::api
