#include "server/engine/definitions/module_code.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/ops/plan.h"

namespace stride::engine {

absl::StatusOr<wire::Code> CodeOfModule(wire::Source source, const v1::KernelLaunch& launch) {
  wire::Code code;
  *code.mutable_source() = std::move(source);
  auto* entries = code.mutable_source()->mutable_entries();
  bool listed = std::find(entries->begin(), entries->end(), launch.entry()) != entries->end();
  bool is_template = launch.entry().find('<') != std::string::npos;
  if (!listed && (!entries->empty() || is_template)) *entries->Add() = launch.entry();
  absl::Status known = ops::CheckGlobalNames(launch, code.source().globals());
  if (!known.ok()) return known;
  return code;
}

}  // namespace stride::engine
