// Kernels and variables of compiled code, as the compiler describes them to the loading process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stride::cpucuda {

// How compiled code runs a kernel's threads.
enum class ThreadForm {
  kLoops,     // one call runs a whole block: loops over its threads
  kPerThread  // one call runs one thread, barriers call back (runtime/fibers.h runs it)
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
  std::string name;    // as in CompileRequest::entries
  std::string symbol;  // in CompileResult::object
  std::vector<KernelParameter> parameters;
  uint32_t static_shared_bytes = 0;       // static variables alone; dynamic ones start there
  uint32_t max_threads_per_block = 1024;  // less when __launch_bounds__ says so
  bool has_barrier = false;
  ThreadForm form = ThreadForm::kLoops;
  std::string form_reason;                // for diagnostics
  uint64_t private_bytes_per_thread = 0;  // scratch that the launcher provides for each thread
};

// A variable named by CompileRequest::globals.
struct CompiledGlobal {
  std::string name;    // as in CompileRequest::globals
  std::string symbol;  // in CompileResult::object; equal for two names of one variable
  uint64_t size = 0;   // bytes
  bool constant = false;
  std::string element;  // its type, or an array's innermost: canonical, unqualified
};

}  // namespace stride::cpucuda
