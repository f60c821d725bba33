#include "server/api/rpc_counters.h"

#include <algorithm>

namespace stride::api {

void RpcCounters::Started(const char* method) {
  std::lock_guard lock(mutex_);
  ++methods_[method].started;
}

void RpcCounters::Handled(const char* method, int code, absl::Duration elapsed) {
  std::lock_guard lock(mutex_);
  MethodCounters& counters = methods_[method];
  ++counters.handled[std::clamp(code, 0, 16)];
  counters.seconds += absl::ToDoubleSeconds(elapsed);
}

std::map<std::string, MethodCounters> RpcCounters::Snapshot() const {
  std::lock_guard lock(mutex_);
  return methods_;
}

}  // namespace stride::api
