// Compiles and loads the source of a kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpucuda/compiler/compiler.h"
#include "cpucuda/runtime/launch.h"
#include "cpucuda/runtime/module.h"

namespace stride::cpucuda {

struct Loaded {
  absl::Status status;
  std::unique_ptr<Module> module;
  CompiledKernel compiled;
  KernelEntry entry;
};

inline Loaded Build(const std::string& source, std::optional<ThreadForm> form = {},
                    std::vector<std::string> entries = {}, std::vector<std::string> options = {}) {
  Loaded loaded;
  CompileRequest request{.source = source, .options = options, .entries = entries, .form = form};
  absl::StatusOr<CompileResult> result = Compile(request);
  loaded.status = result.status();
  if (!result.ok()) return loaded;
  absl::StatusOr<std::unique_ptr<Module>> module = Module::LoadBytes(result->object);
  loaded.status = module.status();
  if (!module.ok()) return loaded;
  loaded.module = std::move(*module);
  loaded.compiled = result->kernels[0];
  loaded.entry = {.name = loaded.compiled.name,
                  .function = loaded.module->Symbol(loaded.compiled.symbol),
                  .static_shared_bytes = loaded.compiled.static_shared_bytes,
                  .max_threads_per_block = loaded.compiled.max_threads_per_block,
                  .private_bytes_per_thread = loaded.compiled.private_bytes_per_thread,
                  .per_thread = loaded.compiled.form == ThreadForm::kPerThread};
  return loaded;
}

}  // namespace stride::cpucuda
