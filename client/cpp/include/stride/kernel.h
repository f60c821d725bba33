// Launching kernels of one's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "stride/operand.h"

namespace stride {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// What stands behind one parameter of the kernel.
// Exactly one of `operand`, `new_array` and `raw` is set.
struct KernelArgument {
  // An array goes as a pointer to its first element: contiguous, and of the type that the parameter
  // points to. A number is converted to the parameter's type where that loses nothing.
  KernelArgument(Operand input) : operand(std::move(input)) {}
  KernelArgument(const Array& array) : operand(array) {}
  template <typename T>
  requires std::is_arithmetic_v<T> KernelArgument(T number) : operand(number) {}
  // A new array of zeros that the launch makes and returns.
  static KernelArgument Out(ArraySpec spec) {
    KernelArgument argument;
    argument.new_array = std::move(spec);
    return argument;
  }
  // A struct by value.
  static KernelArgument Raw(std::string bytes) {
    KernelArgument argument;
    argument.raw = std::move(bytes);
    return argument;
  }

  std::optional<Operand> operand;
  std::optional<ArraySpec> new_array;
  std::optional<std::string> raw;

 private:
  KernelArgument() = default;
};

enum class CodeKind { kSource, kPtx, kBinary, kModule };

struct KernelOptions {
  // CUDA C++ source, PTX, a cubin, or with kModule the name of a module.
  std::string code;
  CodeKind code_kind = CodeKind::kSource;
  // The `__global__` function; for a template a name expression such as `scale<float>`.
  std::string entry;
  Dim3 grid, block;
  uint32_t shared_memory_bytes = 0;
  // Compiler options from the daemon's allow-list; with source only.
  std::vector<std::string> compiler_options;
  std::vector<KernelArgument> arguments;
};

// Kernels compiled once and kept under a name.
struct ModuleSpec {
  std::string code;
  CodeKind code_kind = CodeKind::kSource;
  std::vector<std::string> compiler_options;
  std::vector<std::string> entries;  // empty: every __global__ that is no template
  std::string id;                    // empty: the daemon makes one from the content
  std::string device_kind;           // empty: every kind present
};

struct KernelInfo {
  std::string entry;
  std::string target;
  std::vector<std::string> parameter_types;
  uint32_t max_threads_per_block = 0;
};

struct Module {
  std::string name;
  std::vector<KernelInfo> kernels;
  std::string log;  // the compiler's warnings
};

}  // namespace stride
