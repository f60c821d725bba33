#include "server/worker/cpu/lower/loaded_module.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace stride::cpu {

absl::StatusOr<std::shared_ptr<const LoadedModule>> LoadedModule::Load(
    int fd, const wire::ModuleDescription& description) {
  std::shared_ptr<LoadedModule> loaded(new LoadedModule());
  auto module = cpucuda::Module::Load(fd);
  if (!module.ok()) return module.status();
  loaded->module_ = *std::move(module);
  for (const wire::KernelDescription& kernel : description.kernels()) {
    cpucuda::KernelEntry entry;
    entry.name = kernel.entry();
    entry.function = loaded->module_->Symbol(kernel.symbol());
    entry.static_shared_bytes = kernel.static_shared_bytes();
    entry.max_threads_per_block = kernel.max_threads_per_block();
    entry.private_bytes_per_thread = kernel.private_bytes_per_thread();
    entry.per_thread = kernel.per_thread();
    if (entry.function == nullptr) {
      return absl::InternalError(absl::StrCat("the object lacks kernel ", kernel.entry()));
    }
    loaded->kernels_.push_back({kernel, std::move(entry)});
  }
  auto globals = ModuleGlobals::Find(*loaded->module_, description.globals());
  if (!globals.ok()) return globals.status();
  loaded->globals_ = std::make_unique<ModuleGlobals>(*std::move(globals));
  return loaded;
}

LoadedModule::Loop LoadedModule::FindLoop(const std::string& name) const {
  return reinterpret_cast<Loop>(module_->Symbol(name));
}

LoadedModule::BlockLoop LoadedModule::FindBlockLoop(const std::string& name) const {
  return reinterpret_cast<BlockLoop>(module_->Symbol(name));
}

const LoadedModule::Kernel* LoadedModule::FindKernel(const std::string& entry) const {
  for (const Kernel& kernel : kernels_) {
    if (kernel.description.entry() == entry) return &kernel;
  }
  return nullptr;
}

wire::ModuleLoaded LoadedModule::Attributes() const {
  wire::ModuleLoaded all;
  for (const Kernel& kernel : kernels_) {
    wire::KernelAttributes& attributes = *all.add_kernels();
    attributes.set_entry(kernel.description.entry());
    attributes.set_shared_bytes(kernel.entry.static_shared_bytes);
    attributes.set_local_bytes(static_cast<uint32_t>(kernel.entry.private_bytes_per_thread));
    attributes.set_max_threads_per_block(kernel.entry.max_threads_per_block);
  }
  for (const ModuleGlobals::Global& global : globals_->all()) {
    wire::GlobalAttributes& attributes = *all.add_globals();
    attributes.set_name(global.description.name());
    attributes.set_size(global.description.size());
  }
  return all;
}

}  // namespace stride::cpu
