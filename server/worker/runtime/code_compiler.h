#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/wire/worker.pb.h"

namespace stride::worker {

struct CompiledCode {
  std::string object;  // input of Device::LoadModule
  wire::ModuleDescription description;
  std::string log;  // warnings
};

// The compile mode of a worker executable. One call at a time. The process is disposable, so a
// compiler may leak, but it must not crash on invalid source.
class CodeCompiler {
 public:
  virtual ~CodeCompiler() = default;
  // INVALID_ARGUMENT with the diagnostics as text when the source is wrong; UnknownEntry
  // (unknown_entry.h) when a requested kernel is missing; UNIMPLEMENTED for what this device kind
  // cannot run.
  virtual absl::StatusOr<CompiledCode> Compile(const std::string& target,
                                               const wire::Code& code) = 0;
};

}  // namespace stride::worker
