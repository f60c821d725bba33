#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cpucuda/cpucuda.h"
#include "server/wire/worker.pb.h"

namespace stride::cpu {

// The variables of a loaded module that launches set.
class ModuleGlobals {
 public:
  struct Global {
    wire::GlobalDescription description;
    std::byte* address = nullptr;
    std::string initial;   // the source's initial value; constants only
    bool changed = false;  // set by a launch; constants only
  };

  // `module` must outlive the result. INTERNAL when it lacks a variable.
  static absl::StatusOr<ModuleGlobals> Find(
      const cpucuda::Module& module,
      const google::protobuf::RepeatedPtrField<wire::GlobalDescription>& descriptions);

  // By the name in the compilation request; nullptr when there is none.
  Global* FindGlobal(const std::string& name);
  const std::vector<Global>& all() const { return globals_; }

  // Call before a launch: restores constants to their initial values, then sets these values. On
  // the thread that runs launches.
  struct Value {
    Global* global = nullptr;
    const std::byte* bytes = nullptr;
    uint64_t size = 0;  // at most the variable's size
  };
  void Set(absl::Span<const Value> values);

 private:
  std::vector<Global> globals_;
};

}  // namespace stride::cpu
