#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/ops/client_function.h"
#include "server/ops/op_table.h"
#include "server/ops/program_builder.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"

namespace stride::ops {

// A ufunc of two inputs whose result has their type: what reduces, accumulates and is applied in
// place. A built-in one or a client's.
struct BinaryFunction {
  std::string name;
  DType dtype = DType::kBool;        // of inputs and result
  DType accumulator = DType::kBool;  // in which it is computed
  bool associative = false;          // elements may be combined in any order and grouping
  wire::Program combine;             // of two values of the accumulator's type; no launch constants
  std::optional<wire::ScalarValue> identity;  // of the accumulator's type
  // One of the two, as long as the tables that it was found in.
  const OpRow* row = nullptr;
  const ClientFunction* own = nullptr;
};

// For elements of type `input`; `data_type` unset: NumPy's choice (small integers are summed and
// multiplied in int64 or uint64). `keeps_type`: of add and multiply too. Errors at `field`, or
// DATA_TYPE_MISMATCH at `input_field`.
struct BinaryRequest {
  std::string_view name;
  DType input = DType::kBool;
  std::optional<DType> data_type;
  bool keeps_type = false;
  std::string_view field, input_field;
};
absl::StatusOr<BinaryFunction> FindBinaryFunction(const BinaryRequest& request,
                                                  const FunctionTable* functions);

// Adds the combination of two values of the accumulator's type. Errors at `field`.
absl::StatusOr<Value> CombineValues(ProgramBuilder& builder, const BinaryFunction& function,
                                    Value left, Value right, std::string_view field);

// The program that routines take (routine_plan.h).
wire::RoutineCode::ProgramCode CombineCode(const BinaryFunction& function);

}  // namespace stride::ops
