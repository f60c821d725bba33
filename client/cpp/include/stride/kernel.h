// Launches of client-defined kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "stride/operand.h"

namespace stride {

// An extent of 0 is refused, as in CUDA.
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// A member of a struct that a kernel takes by value: a pointer of 8 bytes to an array, or bytes.
// Exactly one of `array`, `new_array` and `raw` is set.
struct StructMember {
  uint32_t offset = 0;  // bytes from the struct's start
  std::optional<Operand> array = {};
  std::optional<ArraySpec> new_array = {};
  std::optional<std::string> raw = {};
};

// The texel for a coordinate outside of a texture's axis. kWrap and kMirror require normalized
// coordinates; otherwise they act as kClamp.
enum class AddressMode { kWrap = 1, kClamp = 2, kMirror = 3, kBorder = 4 };

// An array that the kernel reads through a texture: the parameter is a `cudaTextureObject_t`. The
// kernel sees the array's content as of the launch.
struct Texture {
  // Contiguous, of int8, uint8, int16, uint16, int32, uint32, float16 or float32.
  Operand array;
  // Texels are read by index (`tex1Dfetch`), not by coordinates (`tex1D`, `tex2D`, `tex3D`).
  bool by_number = false;
  // Width, height, depth in texels. Empty: the array's shape, with the last axis divided by the
  // channels; with `by_number` all elements.
  std::vector<uint32_t> extents = {};
  uint64_t pitch_bytes = 0;  // bytes between rows; 0: rows are contiguous
  uint32_t channels = 1;     // per texel: 1, 2 or 4
  // One per axis, the width's first; missing ones are kClamp.
  std::vector<AddressMode> address_modes = {};
  // Interpolates the texels next to the coordinate, with 8 bits of fraction.
  bool linear_filter = false;
  bool normalized_coordinates = false;  // from 0 to 1
  bool normalized_values = false;       // converts integers of 8 and 16 bits to floats
  std::vector<float> border_color = {};
};

// The argument for one parameter of the kernel. Exactly one of `operand`, `new_array`, `raw`,
// `members` and `texture` is set.
struct KernelArgument {
  // An array is passed as a pointer to its first element. It must be contiguous and have the
  // parameter's pointee type. A number is converted to the parameter's type, if this is exact.
  KernelArgument(Operand input) : operand(std::move(input)) {}
  KernelArgument(const Array& array) : operand(array) {}
  KernelArgument(Texture image) : texture(std::move(image)) {}
  template <typename T>
  requires std::is_arithmetic_v<T> KernelArgument(T number) : operand(number) {}
  // A new array of zeros that the launch creates and returns.
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

  // A struct by value of `size` bytes with arrays in it; bytes outside of the members are zero. The
  // types of its pointees are unknown, so the arrays count as written.
  static KernelArgument Struct(uint32_t size, std::vector<StructMember> members) {
    KernelArgument argument;
    argument.members = std::move(members);
    argument.struct_size = size;
    return argument;
  }

  std::optional<Operand> operand;
  std::optional<ArraySpec> new_array;
  std::optional<std::string> raw;
  std::optional<std::vector<StructMember>> members;
  uint32_t struct_size = 0;  // bytes; set with `members`
  std::optional<Texture> texture;

 private:
  KernelArgument() = default;
};

// A `__constant__` or `__device__` variable and its value for a launch.
struct GlobalValue {
  // In the source's spelling; for a template a name expression such as `table<float>`. With a
  // module it must be one of the module's globals.
  std::string name;
  // An array, copied to the start of the variable, or a number.
  std::optional<Operand> value = {};
  std::optional<std::string> raw = {};  // a struct; excludes `value`
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
  // Other constants have their initial values from the source.
  std::vector<GlobalValue> globals = {};
  // All blocks run at once and may synchronize; a grid too large for that is refused.
  bool cooperative = false;
};

// Kernels compiled once and stored under a name.
struct ModuleSpec {
  std::string code;
  CodeKind code_kind = CodeKind::kSource;
  std::vector<std::string> compiler_options;
  std::vector<std::string> entries;  // empty: each __global__ function that is not a template
  std::vector<std::string> globals;  // variables that launches may set
  std::string id;                    // empty: the daemon derives one from the content
  std::string device_kind;           // empty: every available kind
};

struct KernelInfo {
  std::string entry;
  std::string target;
  std::vector<std::string> parameter_types;
  uint32_t max_threads_per_block = 0;
};

// A variable of a module on one device kind.
struct GlobalInfo {
  std::string name;
  std::string target;
  uint64_t size_bytes = 0;
  bool constant = false;
  DataType data_type = DataType::kUnspecified;  // its elements' type, if the compiler reports it
};

struct Module {
  std::string name;
  std::vector<KernelInfo> kernels;
  std::vector<GlobalInfo> globals;
  std::string log;  // the compiler's warnings
};

}  // namespace stride
