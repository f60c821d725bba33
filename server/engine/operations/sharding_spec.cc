// Operations: reads the devices and the axis of a client's Sharding.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/operations/operations.h"
#include "server/engine/operations/resolve_operation.h"

namespace stride::engine {
namespace {

constexpr char kProcessor[] = "cpu";

}  // namespace

absl::StatusOr<ops::Spread> Operations::ReadSharding(const v1::Sharding& sharding, size_t rank,
                                                     const std::string& field) const {
  ops::Spread spread;
  spread.replicated = sharding.replicated();
  const int axes = static_cast<int>(rank);
  if (spread.replicated && sharding.axis() != 0) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(field, ".axis"),
                        "a replicated array is split along no axis; leave this unset");
  }
  if (!spread.replicated) {
    if (sharding.axis() < -axes || sharding.axis() >= axes) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, absl::StrCat(field, ".axis"),
                          absl::StrCat("the array has no such axis to split along: ",
                                       sharding.axis(), "; it has ", axes));
    }
    spread.axis = sharding.axis() < 0 ? sharding.axis() + axes : sharding.axis();
  }
  const auto& devices = core_->broker->devices();
  for (int i = 0; i < sharding.devices_size(); ++i) {
    const std::string at = absl::StrCat(field, ".devices[", i, "]");
    auto device = FindDevice(*core_, sharding.devices(i));
    if (!device.ok()) return AtField(device.status(), at, "no such device");
    if (std::count(spread.devices.begin(), spread.devices.end(), *device) > 0) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, at,
                          absl::StrCat("a device has one part: ", sharding.devices(i)));
    }
    if (!spread.devices.empty() && devices[*device].kind() != devices[spread.devices[0]].kind()) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, at,
                          absl::StrCat("the devices of one array are of one kind: ",
                                       sharding.devices(i), " is ", devices[*device].kind(),
                                       ", the first is ", devices[spread.devices[0]].kind()));
    }
    spread.devices.push_back(*device);
  }
  if (!spread.devices.empty()) return spread;
  // Prefers accelerators to the processor.
  std::string kind;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!scheduler_->health().Serves(static_cast<int>(i))) continue;
    if (kind.empty() || kind == kProcessor) kind = devices[i].kind();
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].kind() == kind && scheduler_->health().Serves(static_cast<int>(i)))
      spread.devices.push_back(static_cast<int>(i));
  }
  if (spread.devices.empty()) {
    return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                    "no device serves now", absl::Seconds(1));
  }
  return spread;
}

}  // namespace stride::engine
