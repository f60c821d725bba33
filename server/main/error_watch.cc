#include "server/main/error_watch.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/log.h"

namespace stride {
namespace {

constexpr int kWaitMillis = 200;  // longest wait of the destructor
constexpr std::string_view kPrefix = "devices/";

}  // namespace

std::unique_ptr<ErrorWatch> ErrorWatch::Start(metrics::Nvml* nvml, engine::DeviceService* devices) {
  std::vector<std::string> uuids;
  for (const v1::Device& device : devices->List()) {
    if (device.kind() == "cuda") uuids.push_back(device.name().substr(kPrefix.size()));
  }
  if (uuids.empty()) return nullptr;
  if (!nvml->CollectErrors(uuids)) {
    api::LogInfo(
        "the driver reports no GPU errors here; device health follows from their work alone");
    return nullptr;
  }
  return std::unique_ptr<ErrorWatch>(new ErrorWatch(nvml, devices));
}

ErrorWatch::ErrorWatch(metrics::Nvml* nvml, engine::DeviceService* devices)
    : nvml_(nvml), devices_(devices), thread_([this] { Run(); }) {}

ErrorWatch::~ErrorWatch() {
  stop_ = true;
  thread_.join();
}

void ErrorWatch::Run() {
  while (!stop_) {
    auto error = nvml_->NextError(kWaitMillis);
    if (!error) continue;
    std::string device = absl::StrCat(std::string(kPrefix), error->uuid);
    std::string text = absl::StrCat("the driver reports XID ", error->xid);
    api::LogWarning(absl::StrCat(device, ": ", text));
    if (metrics::NeedsReset(error->xid)) devices_->ReportBroken(device, text);
  }
}

}  // namespace stride
