#pragma once

#include <cstdint>
#include <string>

#include "server/base/unique_fd.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// Code compiled for one target. Immutable; shared by all workers that load it.
struct CompiledModule {
  uint64_t id = 0;     // unique in the daemon's life, never 0
  std::string target;  // `cpu:znver4`
  std::string key;     // hash of code, target and compiler version
  UniqueFd object;     // sealed memfd
  uint64_t size = 0;
  wire::ModuleDescription description;
  std::string log;
};

}  // namespace stride::broker
