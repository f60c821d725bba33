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
    std::string initial;   // of constants: what the source initializes them to
    bool changed = false;  // by a launch; constants only
  };

  // `module` must outlive this. INTERNAL when it lacks one.
  static absl::StatusOr<ModuleGlobals> Find(
      const cpucuda::Module& module,
      const google::protobuf::RepeatedPtrField<wire::GlobalDescription>& descriptions);

  // By the name that compilation was asked for; nullptr when there is none.
  Global* FindGlobal(const std::string& name);
  const std::vector<Global>& all() const { return globals_; }

  // Before a launch: constants begin as the source has them, then these values are set. On the
  // thread that runs launches.
  struct Value {
    Global* global = nullptr;
    const std::byte* bytes = nullptr;
    uint64_t size = 0;  // at most the variable's
  };
  void Set(absl::Span<const Value> values);

 private:
  std::vector<Global> globals_;
};

}  // namespace stride::cpu
