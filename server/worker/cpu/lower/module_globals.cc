#include "server/worker/cpu/lower/module_globals.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stride::cpu {

absl::StatusOr<ModuleGlobals> ModuleGlobals::Find(
    const cpucuda::Module& module,
    const google::protobuf::RepeatedPtrField<wire::GlobalDescription>& descriptions) {
  ModuleGlobals found;
  for (const wire::GlobalDescription& description : descriptions) {
    Global global{.description = description};
    global.address = static_cast<std::byte*>(module.Symbol(description.symbol()));
    if (global.address == nullptr) {
      return absl::InternalError(absl::StrCat("the object lacks variable ", description.name()));
    }
    if (description.constant()) {
      global.initial.assign(reinterpret_cast<const char*>(global.address), description.size());
    }
    found.globals_.push_back(std::move(global));
  }
  return found;
}

ModuleGlobals::Global* ModuleGlobals::FindGlobal(const std::string& name) {
  for (Global& global : globals_) {
    if (global.description.name() == name) return &global;
  }
  return nullptr;
}

void ModuleGlobals::Set(absl::Span<const Value> values) {
  for (Global& global : globals_) {
    if (!std::exchange(global.changed, false)) continue;
    std::memcpy(global.address, global.initial.data(), global.initial.size());
  }
  for (const Value& value : values) {
    if (value.size > 0) std::memcpy(value.global->address, value.bytes, value.size);
    value.global->changed = value.global->description.constant();
  }
}

}  // namespace stride::cpu
