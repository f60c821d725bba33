#include "server/worker/cuda/driver/module_globals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {

absl::StatusOr<ModuleGlobals> ModuleGlobals::Find(
    const Module& module,
    const google::protobuf::RepeatedPtrField<wire::GlobalDescription>& descriptions) {
  ModuleGlobals found;
  for (const wire::GlobalDescription& description : descriptions) {
    absl::StatusOr<Module::Variable> variable = module.Global(description.symbol().c_str());
    if (absl::IsNotFound(variable.status())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the device finds no variable `", description.name(), "` in the code"));
    }
    if (!variable.ok()) return variable.status();
    if (description.size() != 0 && description.size() != variable->size) {
      return absl::InternalError(absl::StrCat("variable `", description.name(),
                                              "` differs from what the compiler described"));
    }
    found.globals_.push_back({.name = description.name(),
                              .address = variable->address,
                              .size = variable->size,
                              .constant = description.constant()});
  }
  return found;
}

ModuleGlobals& ModuleGlobals::operator=(ModuleGlobals&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(stream_, other.stream_);
  std::swap(globals_, other.globals_);
  return *this;
}

ModuleGlobals::~ModuleGlobals() {
  for (const Global& global : globals_) {
    if (global.initial != 0) driver_->cuMemFreeAsync(global.initial, stream_);
  }
}

ModuleGlobals::Global* ModuleGlobals::FindGlobal(const std::string& name) {
  for (Global& global : globals_) {
    if (global.name == name) return &global;
  }
  return nullptr;
}

absl::Status ModuleGlobals::Restore(const Driver& driver, CUstream stream) {
  for (Global& global : globals_) {
    if (!global.changed) continue;
    STRIDE_CUDA_RETURN(
        driver.cuMemcpyDtoDAsync(global.address, global.initial, global.size, stream),
        absl::StrCat("restoring `", global.name, "`"));
    global.changed = false;
  }
  return absl::OkStatus();
}

absl::Status ModuleGlobals::WillChange(const Driver& driver, CUstream stream, Global* global) {
  if (!global->constant) return absl::OkStatus();
  if (global->initial == 0) {
    driver_ = &driver;
    stream_ = stream;
    CUdeviceptr image = 0;
    STRIDE_CUDA_RETURN(driver.cuMemAllocAsync(&image, global->size, stream),
                       "keeping a constant's initial value");
    global->initial = image;
    // Save the initial value before the first change.
    STRIDE_CUDA_RETURN(driver.cuMemcpyDtoDAsync(image, global->address, global->size, stream),
                       "keeping a constant's initial value");
  }
  global->changed = true;
  return absl::OkStatus();
}

}  // namespace stride::cuda
