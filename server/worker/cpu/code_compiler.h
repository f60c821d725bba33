#pragma once

#include <string>
#include <vector>

#include "server/worker/runtime/code_compiler.h"

namespace stride::cpu {

// Clang for the CPU device: clients' CUDA C++, and the loops that the code generator writes.
class CpuCompiler : public worker::CodeCompiler {
 public:
  absl::StatusOr<worker::CompiledCode> Compile(const std::string& target,
                                               const wire::Code& code) override;
};

// `cpu:znver4`: the processor that code made here for "native" runs on.
absl::StatusOr<std::string> NativeTarget();
// The portable targets whose code this processor runs, such as `cpu:x86-64-v4` and `cpu:x86-64-v3`,
// the best first.
std::vector<std::string> PortableTargets();
// Compiler, version and the identity of this executable.
std::string ToolchainName();

}  // namespace stride::cpu
