#include "client/cpp/src/call.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/status.h"
#include "stride/client.h"
#include "stride/v1/tenant_service.grpc.pb.h"

namespace stride {
namespace {

std::chrono::system_clock::time_point ToTime(const google::protobuf::Timestamp& time) {
  const auto since = std::chrono::seconds(time.seconds()) + std::chrono::nanoseconds(time.nanos());
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
}

}  // namespace

Result<Usage> Client::GetUsage(const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::GetUsageResponse response;
  auto stub = v1::TenantService::NewStub(core_->channels.control());
  if (auto status = stub->GetUsage(call.context(), {}, &response); !status.ok())
    return internal::ToError(status);
  const v1::Usage& in = response.usage();
  Usage out{.tenant = in.tenant(),
            .start_time = ToTime(in.start_time()),
            .time = ToTime(in.time()),
            .device_seconds = in.device_seconds(),
            .upload_bytes = in.upload_bytes(),
            .download_bytes = in.download_bytes(),
            .array_byte_seconds = in.array_byte_seconds(),
            .operations = in.operations(),
            .operations_failed = in.operations_failed(),
            .jobs = in.jobs()};
  for (const auto& device : in.devices())
    out.devices.push_back({device.device(), device.device_seconds(), device.operations()});
  for (const auto& quota : in.quotas()) {
    QuotaUsage& line = out.quotas.emplace_back(QuotaUsage{quota.name(), quota.used(), {}});
    if (quota.has_limit()) line.limit = quota.limit();
  }
  return out;
}

}  // namespace stride
