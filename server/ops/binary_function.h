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

// A built-in or client-defined ufunc of two inputs whose result has the inputs' type. Reductions,
// accumulations and ufunc.at use it.
struct BinaryFunction {
  std::string name;
  DType dtype = DType::kBool;        // type of inputs and result
  DType accumulator = DType::kBool;  // type of the computation
  bool associative = false;          // operands may be combined in any order and grouping
  wire::ScalarProgram
      combine;  // combines two values of the accumulator's type; no launch constants
  std::optional<wire::ScalarValue> identity;  // in the accumulator's type
  // Exactly one is set; valid as long as the table that contains it.
  const OpRow* row = nullptr;
  const ClientFunction* own = nullptr;
};

// Requests the function for elements of type `input`. Without `data_type`, NumPy's rule applies:
// add and multiply of small integers compute in int64 or uint64, unless `keeps_type`. Errors at
// `field`, or DATA_TYPE_MISMATCH at `input_field`.
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

// Returns the function as a program for routines (routine_plan.h).
wire::RoutineCode::ProgramCode CombineCode(const BinaryFunction& function);

}  // namespace stride::ops
