#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/wire/worker.pb.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::cuda {

// The variables of a loaded module that launches set. All changes are made in stream order, so that
// nothing waits for them. Not thread-safe.
class ModuleGlobals {
 public:
  struct Global {
    std::string name;  // as in the compilation request
    CUdeviceptr address = 0;
    uint64_t size = 0;
    bool constant = false;
    CUdeviceptr initial = 0;  // copy of a changed constant's initial value
    bool changed = false;     // a constant that differs from its initial value
  };

  // INVALID_ARGUMENT when the module lacks a variable, or when it differs from its description.
  static absl::StatusOr<ModuleGlobals> Find(
      const Module& module,
      const google::protobuf::RepeatedPtrField<wire::GlobalDescription>& descriptions);
  ModuleGlobals() = default;
  ModuleGlobals(ModuleGlobals&& other) noexcept { *this = std::move(other); }
  ModuleGlobals& operator=(ModuleGlobals&& other) noexcept;
  // The stream must still exist if anything was changed.
  ~ModuleGlobals();

  // nullptr when there is none of this name.
  Global* FindGlobal(const std::string& name);
  const std::vector<Global>& all() const { return globals_; }

  // Restores all changed constants to their initial values.
  absl::Status Restore(const Driver& driver, CUstream stream);
  // Call before a launch's value is copied to the variable.
  absl::Status WillChange(const Driver& driver, CUstream stream, Global* global);

 private:
  const Driver* driver_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<Global> globals_;
};

}  // namespace stride::cuda
