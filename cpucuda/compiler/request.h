#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cpucuda/kernel/compiled_kernel.h"

namespace stride::cpucuda {

enum class SourceKind {
  // CUDA C++. Each `__global__` function becomes a function that runs one whole block: loops over
  // the block's threads, cut at its barriers.
  kCudaKernels,
  // Generated C++ loops, `extern "C" void f(void** args, int64_t begin, int64_t end)`. Same
  // prelude; no cuts.
  kNativeLoops,
};

struct CompileRequest {
  std::string source;
  SourceKind kind = SourceKind::kCudaKernels;
  // -DX[=Y] -UX -std=c++11..20 --use_fast_math --fmad=true|false -default-device -O0..-O3;
  // -lineinfo and -G are accepted and ignored.
  std::vector<std::string> options;
  // Kernel names or template name expressions such as "scale<float>". Empty: every non-template
  // kernel.
  std::vector<std::string> entries;
  // Variables for the loading process to find: names or name expressions such as "table<float>".
  std::vector<std::string> globals;
  std::string cpu = "native";      // an LLVM CPU name, such as "x86-64-v3", or "native"
  std::optional<ThreadForm> form;  // nothing: chosen for each kernel, see spmd/form_choice.h
};

}  // namespace stride::cpucuda
