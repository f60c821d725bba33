// Compiles CUDA C++, and generated loops, to native code for a CPU.
//
// Compile() takes text that a client wrote. It opens only two memory files of its own (through
// /proc/self/fd). Call it in a process that may die: the front end is not hardened against hostile
// text. Any thread may call; calls are serialized. The linker writes to standard output for a
// moment, so no other code should print there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::cpucuda {

enum class SourceKind {
  // CUDA C++. Each `__global__` function becomes a function that runs one whole block: loops over
  // the block's threads, cut at its barriers.
  kCudaKernels,
  // Generated C++ loops, `extern "C" void f(void** args, int64_t begin, int64_t end)`. Same
  // prelude; no cuts.
  kNativeLoops,
};

// How compiled code runs a kernel's threads.
enum class ThreadForm {
  kLoops,     // one call runs a whole block: loops over its threads
  kPerThread  // one call runs one thread, barriers call back (runtime/fibers.h runs it)
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

struct KernelParameter {
  enum class Kind { kPointer, kInteger, kFloat, kAggregate };
  uint32_t offset = 0;  // bytes from the start of the packed parameters
  uint32_t size = 0;
  uint32_t alignment = 0;
  Kind kind = Kind::kAggregate;
  std::string type;            // as spelled: "const int*", "float"
  bool pointee_const = false;  // pointers only
  std::string pointee;         // canonical, unqualified: "int", "unsigned char", "__half"
  bool is_signed = false;      // integers, or the pointee when it is one
};

struct CompiledKernel {
  std::string name;    // as asked for
  std::string symbol;  // in CompileResult::object
  std::vector<KernelParameter> parameters;
  uint32_t static_shared_bytes = 0;       // static variables alone; dynamic ones start there
  uint32_t max_threads_per_block = 1024;  // less when __launch_bounds__ says so
  bool has_barrier = false;
  ThreadForm form = ThreadForm::kLoops;
  std::string form_reason;  // for people
  uint64_t private_bytes_per_thread =
      0;  // scratch the launcher must lend, for each thread of a block
};

// A variable named by CompileRequest::globals.
struct CompiledGlobal {
  std::string name;    // as asked for
  std::string symbol;  // in CompileResult::object; equal for two names of one variable
  uint64_t size = 0;   // bytes
  bool constant = false;
  std::string element;  // its type, or an array's innermost: canonical, unqualified
};

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
