// Compiles CUDA C++, and generated loops, to native code for a CPU.
//
// Compile() takes text that a client wrote. It opens only two memory files of its own (through
// /proc/self/fd). Call it in a process that may die: the front end is not hardened against hostile
// text. Any thread may call; calls are serialized. The linker writes to standard output for a
// moment, so no other code should print there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cpucuda/compiler/request.h"
#include "cpucuda/kernel/compiled_kernel.h"

namespace stride::cpucuda {

struct CompileResult {
  std::string object;  // an ELF shared object; needs memcpy, memmove, memset, memcmp and libm from
                       // the loading process
  std::vector<CompiledKernel> kernels;
  std::vector<CompiledGlobal> globals;
  std::string log;  // warnings
};

// Errors: INVALID_ARGUMENT with the compiler's diagnostics for a wrong source; NOT_FOUND
// (server/base/unknown_entry.h) for an entry or variable that the source lacks; UNIMPLEMENTED with
// the feature's name for valid CUDA that the library lacks; INTERNAL when the compiler failed.
absl::StatusOr<CompileResult> Compile(const CompileRequest& request);

}  // namespace stride::cpucuda
