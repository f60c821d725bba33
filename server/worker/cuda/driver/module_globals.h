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

// The variables of a loaded module that launches set. All changes are made in the order of the
// stream, so that nothing waits for them. Not thread-safe.
class ModuleGlobals {
 public:
  struct Global {
    std::string name;  // as compilation was asked for it
    CUdeviceptr address = 0;
    uint64_t size = 0;
    bool constant = false;
    CUdeviceptr initial = 0;  // of a constant that was ever changed: what the source makes it
    bool changed = false;     // of a constant: differs from that
  };

  // INVALID_ARGUMENT when the module lacks one, or it is not as it was described.
  static absl::StatusOr<ModuleGlobals> Find(
      const Module& module,
      const google::protobuf::RepeatedPtrField<wire::GlobalDescription>& descriptions);
  ModuleGlobals() = default;
  ModuleGlobals(ModuleGlobals&& other) noexcept { *this = std::move(other); }
  ModuleGlobals& operator=(ModuleGlobals&& other) noexcept;
  // The stream must still be there if anything was changed.
  ~ModuleGlobals();

  // nullptr when there is none of this name.
  Global* FindGlobal(const std::string& name);
  const std::vector<Global>& all() const { return globals_; }

  // Makes all constants that were changed what the source has them be.
  absl::Status Restore(const Driver& driver, CUstream stream);
  // Called before a launch's value is copied to the variable.
  absl::Status WillChange(const Driver& driver, CUstream stream, Global* global);

 private:
  const Driver* driver_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<Global> globals_;
};

}  // namespace stride::cuda
