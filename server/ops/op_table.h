#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "server/store/dtype.h"

// The table of elementwise operations. Typing and both code generators read it; documentation and
// tests are generated from it. A new operation is one row in op_table.cc and, if its body is more
// than an expression, a function in server/worker/codegen/device/.
namespace stride::ops {

// Families of element types for which an operation has a loop.
enum Loops : uint8_t {
  kBoolLoop = 1,
  kIntLoops = 2,
  kFloatLoops = 4,
  kComplexLoops = 8,
  kDoubleLoops = 16,  // float64 is the only float type, complex128 the only complex type
};

enum class ResultRule {
  kSame,  // the loop's type
  kBool,
  kUInt8,
  kInt32,
  kReal,  // type of the real part for complex types; other types are unchanged
};

// Exceptions to the general rule, which takes the first loop type to which all arguments cast
// safely.
enum class TypeRule {
  kUniform,
  kDivide,        // integers and bool become float64
  kComparison,    // int64 with uint64 compares exactly; weak integers may be out of range
  kLogical,       // as kUniform; a weak integer stands for its truth value
  kLoadExponent,  // ldexp: the second argument is int32 or int64
  kWhere,         // bool, then two arguments of one type
  kClip,          // weak integers out of range saturate
};

struct OpRow {
  std::string_view name;  // NumPy's name
  int arity;
  int loops;  // bits of Loops
  ResultRule result = ResultRule::kSame;
  TypeRule rule = TypeRule::kUniform;
  // C++ expression over a, b, c of the compute type; empty: a call of the device header's
  // `st_<name>`. float16 and bfloat16 compute in float32.
  std::string_view body;
  // NumPy has no loop for arguments that are all bool (other operations promote them to int8).
  bool refuses_bool = false;
  // Identity of the reduction with this operation; empty: none.
  std::string_view identity;
  std::string_view doc;
};

absl::Span<const OpRow> OpTable();

// Finds a row by name or alias (`abs`, `pow`, `acos`, `bitwise_not`, ...); nullptr if unknown.
const OpRow* FindOp(std::string_view name);

// Finds the row of an instruction: FindOp, and internal operations that clients cannot name.
// Internal operations compute in one type each, regardless of their row.
const OpRow* FindInstruction(std::string_view name);

// A ufunc with two outputs: one row per output.
struct TwoOutputUfunc {
  std::string_view name, first, second;
};
// Returns nullptr if there is no such ufunc.
const TwoOutputUfunc* FindTwoOutputUfunc(std::string_view name);

// Returns the known name or alias nearest to `name`, or an empty string. `more` adds names, such as
// an expression's inputs.
std::string SuggestOp(std::string_view name, absl::Span<const std::string> more = {});

// Returns the row's body, or the call of the header's function.
std::string BodyOf(const OpRow& row);

// Returns whether the row has a loop of this type.
bool HasLoop(const OpRow& row, DType dtype);

// Returns the type in which values of `dtype` are computed: float32 for 16-bit floats, else the
// type itself.
constexpr DType ComputeType(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}
// Returns the compute type of a loop of this row: operations on the bits of floats (nextafter,
// spacing) compute in the type itself.
DType ComputeType(const OpRow& row, DType dtype);

// Returns the result type of a loop of `dtype`.
DType ResultOf(const OpRow& row, DType dtype);

}  // namespace stride::ops
