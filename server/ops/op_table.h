#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "server/store/dtype.h"

// The one table of elementwise operations: typing reads it, both code generators read it,
// documentation and tests are made from it. To add an operation: one row in op_table.cc and, when
// its body is more than an expression, a function in server/worker/codegen/device/.
namespace stride::ops {

// Families of element types for which an operation has a loop.
enum Loops : uint8_t {
  kBoolLoop = 1,
  kIntLoops = 2,
  kFloatLoops = 4,
  kComplexLoops = 8,
  kDoubleLoops = 16,  // float64 alone among the floats, complex128 among the complex
};

enum class ResultRule {
  kSame,  // the loop's type
  kBool,
  kUInt8,
  kInt32,
  kReal,  // the type of a complex number's parts; other types stay
};

// What the general rule (first loop type to which all arguments cast safely) does not cover.
enum class TypeRule {
  kUniform,
  kDivide,        // integers and bool go to float64
  kComparison,    // int64 beside uint64 compares exactly, out-of-range weak integers are allowed
  kLogical,       // as kUniform; a weak integer counts as its truth
  kLoadExponent,  // ldexp: the second argument is int32 or int64
  kWhere,         // bool, then two of one type
  kClip,          // weak integers beyond the type's range saturate
};

struct OpRow {
  std::string_view name;  // NumPy's
  int arity;
  int loops;  // of Loops
  ResultRule result = ResultRule::kSame;
  TypeRule rule = TypeRule::kUniform;
  // C++ over a, b, c of the compute type; empty: a call of the device header's `st_<name>`. float16
  // and bfloat16 compute in float32.
  std::string_view body;
  // NumPy has no loop for arguments that are all bool (others promote them to int8).
  bool refuses_bool = false;
  // Of the reduction with this operation; empty: none.
  std::string_view identity;
  std::string_view doc;
};

absl::Span<const OpRow> OpTable();

// By name or alias (`abs`, `pow`, `acos`, `bitwise_not`...); nullptr when unknown.
const OpRow* FindOp(std::string_view name);

// The row of an instruction: FindOp, and what planners use and clients do not name. These compute
// in one type each, whatever their row says.
const OpRow* FindInstruction(std::string_view name);

// A ufunc with two outputs: a row for each.
struct TwoOutputUfunc {
  std::string_view name, first, second;
};
// nullptr when there is none of this name.
const TwoOutputUfunc* FindTwoOutputUfunc(std::string_view name);

// The known name (aliases included) nearest to `name`; empty when none is near. `more` adds names,
// such as an expression's inputs.
std::string SuggestOp(std::string_view name, absl::Span<const std::string> more = {});

// The body, or the call of the header's function.
std::string BodyOf(const OpRow& row);

// Whether the row has a loop of this type.
bool HasLoop(const OpRow& row, DType dtype);

// The type in which values of `dtype` are computed: float32 for the 16-bit floats, else itself.
constexpr DType ComputeType(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}
// The same for a loop of this row: operations on the bits of floats (nextafter, spacing) stay in
// the type itself.
DType ComputeType(const OpRow& row, DType dtype);

// The result of a loop of `dtype`.
DType ResultOf(const OpRow& row, DType dtype);

}  // namespace stride::ops
