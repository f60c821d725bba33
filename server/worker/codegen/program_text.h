#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

namespace stride::codegen {

enum class Target { kCuda, kCpu };

// The device header's name of a type: `float`, `st_i32`, `st_c64`.
std::string TypeName(DType dtype);

// The type that a client's function gets for a dtype: `float2` for complex64; otherwise the name of
// the compute type.
std::string ClientTypeName(DType dtype);

// A constant from its bytes. INTERNAL when there are too few or too many.
absl::StatusOr<std::string> LiteralText(DType dtype, const std::string& bytes);

// The device headers that a program over these types needs, after the macros that they need.
std::string Preamble(Target target, const std::vector<DType>& dtypes);

// Whether the program needs device/random.h after these.
bool UsesRandom(const wire::ScalarProgram& program);
// Whether the program has a sine, cosine or tangent of a float32 or float64.
bool UsesTurns(const wire::ScalarProgram& program);

// Collects all types in a program.
void CollectTypes(const wire::ScalarProgram& program, std::vector<DType>* dtypes);

// A program as a function:
//   struct NAMEScalars { T s0; ... };
//   ST_FN NAMEScalars NAME_scalars(const char (*slots)[16]);   // no argument without scalars
//   ST_FN void NAME(const NAMEScalars& scalars, T0 in0, ..., st_i64 index, R0& out0, ...);
// With `takes_turns` NAME is a template over its last parameter, st_few_turns or st_any_turns
// (device/floats.h), which has the sines, cosines and tangents.
struct ProgramText {
  std::string definitions;
  int num_scalars = 0;
};
absl::StatusOr<ProgramText> EmitProgram(const std::string& name, const wire::ScalarProgram& program,
                                        const std::vector<DType>& inputs, bool takes_turns = false);

}  // namespace stride::codegen
