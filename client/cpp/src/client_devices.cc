#include "client/cpp/src/call.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/status.h"
#include "stride/client.h"
#include "stride/v1/device_service.grpc.pb.h"

namespace stride {

std::string Device::place() const { return "devices/" + kind + ":" + std::to_string(index); }

Result<std::vector<Device>> Client::ListDevices(const CallOptions& options) {
  auto stub = v1::DeviceService::NewStub(core_->channels.control());
  std::vector<Device> devices;
  v1::ListDevicesRequest request;
  do {
    internal::Call call(options, core_->default_timeout);
    v1::ListDevicesResponse response;
    if (auto status = stub->ListDevices(call.context(), request, &response); !status.ok()) {
      return internal::ToError(status);
    }
    for (const auto& device : response.devices()) devices.push_back(internal::FromProto(device));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return devices;
}

Result<DaemonLimits> Client::GetLimits(const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::ListDevicesRequest request;
  request.set_page_size(1);
  v1::ListDevicesResponse response;
  auto stub = v1::DeviceService::NewStub(core_->channels.control());
  if (auto status = stub->ListDevices(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  const v1::DaemonLimits& limits = response.limits();
  return DaemonLimits{.descriptors = limits.descriptors(),
                      .open_descriptors = limits.open_descriptors(),
                      .connections = limits.connections(),
                      .workers = limits.workers()};
}

Result<void> Client::WatchDevices(
    const WatchOptions& watch,
    const std::function<bool(const std::vector<DeviceSample>&)>& on_sample,
    const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::WatchDevicesRequest request;
  request.mutable_names()->Assign(watch.devices.begin(), watch.devices.end());
  internal::ToProto(watch.interval, request.mutable_interval());
  request.set_max_samples(watch.max_samples);
  auto stub = v1::DeviceService::NewStub(core_->channels.control());
  auto stream = stub->WatchDevices(call.context(), request);
  bool wanted = true;
  for (v1::WatchDevicesResponse response; wanted && stream->Read(&response);) {
    std::vector<DeviceSample> samples;
    for (const auto& sample : response.samples()) samples.push_back(internal::FromProto(sample));
    wanted = on_sample(samples);
  }
  if (!wanted) call.context()->TryCancel();
  const grpc::Status status = stream->Finish();
  if (!wanted || status.ok()) return {};
  return internal::ToError(status);
}

}  // namespace stride
