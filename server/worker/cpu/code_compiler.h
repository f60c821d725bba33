#pragma once

#include <string>
#include <vector>

#include "server/worker/runtime/code_compiler.h"

namespace stride::cpu {

// Clang for the CPU device: clients' CUDA C++, and generated loops.
class CpuCompiler : public worker::CodeCompiler {
 public:
  absl::StatusOr<worker::CompiledCode> Compile(const std::string& target,
                                               const wire::Code& code) override;
};

// The target of "native" code of this processor, such as `cpu:znver4`.
absl::StatusOr<std::string> NativeTarget();
// The portable targets whose code this processor runs, such as `cpu:x86-64-v4` and `cpu:x86-64-v3`,
// the best first.
std::vector<std::string> PortableTargets();
// Compiler, version and the identity of this executable.
std::string ToolchainName();

}  // namespace stride::cpu
