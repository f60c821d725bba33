#include "client/cli/array_json.h"

namespace stride::cli {

const char* StateName(ArrayInfo::State state) {
  switch (state) {
    case ArrayInfo::State::kPending:
      return "PENDING";
    case ArrayInfo::State::kReady:
      return "READY";
    case ArrayInfo::State::kFailed:
      return "FAILED";
    case ArrayInfo::State::kUnspecified:
      break;
  }
  return "UNSPECIFIED";
}

Json ToJson(const ArrayInfo& info) {
  std::vector<Json> shape, devices;
  for (int64_t extent : info.spec.shape) shape.push_back(Json::Integer(extent));
  for (const auto& device : info.devices) devices.push_back(Json::String(device));
  return Json::Object({{"name", Json::String(info.name)},
                       {"data_type", Json::String(Name(info.spec.data_type))},
                       {"shape", Json::Array(shape)},
                       {"size_bytes", Json::Integer(info.size_bytes)},
                       {"state", Json::String(StateName(info.state))},
                       {"devices", Json::Array(devices)}});
}

}  // namespace stride::cli
