#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/ops/expression_parser.h"
#include "server/ops/program_builder.h"
#include "server/ops/promotion.h"
#include "server/ops/signature.h"
#include "server/store/dtype.h"
#include "server/wire/plan.pb.h"
#include "stride/v1/function_service.pb.h"

// Functions that clients define. This layer treats their CUDA C++ text as data.
namespace stride::ops {

// Body of a function of values: an expression or a device function.
struct FunctionBody {
  std::vector<std::string> parameters;  // parameters of the expression
  ExpressionTree expression;
  wire::DeviceFunction device_function;
  bool is_expression() const { return !expression.empty(); }
};
inline constexpr size_t kMaxFunctionResults = 8;

// A registered function, parsed and checked. Immutable.
struct ClientFunction {
  enum class Kind { kUfunc, kReduction, kGufunc };
  struct Loop {
    std::vector<DType> inputs;
    DType accumulator = DType::kBool;  // for reductions; else the type of the first output
    std::vector<DType> outputs;
  };
  Kind kind = Kind::kUfunc;
  std::string id;
  std::string device_kind;  // device kind of its code; empty: any
  size_t num_inputs = 0;
  std::vector<Loop> loops;                // empty: an untyped expression, typed at each use
  FunctionBody body;                      // for ufuncs and gufuncs
  size_t num_outputs = 1;                 // for ufuncs
  std::vector<FunctionBody> more_bodies;  // expressions of the further results
  std::optional<FunctionBody> map, finish;
  FunctionBody combine;
  std::optional<WeakScalar> identity;
  bool associative = false;
  CoreLayout layout;
};

// Table in which planners look up client-defined functions.
class FunctionTable {
 public:
  virtual ~FunctionTable() = default;
  // Returns nullptr if there is none; valid while the operation is planned.
  virtual const ClientFunction* Find(std::string_view name) const = 0;
};

// Checks that the ID is a C identifier and no built-in name. INVALID_FIELD at `field`.
absl::Status CheckFunctionId(std::string_view id, std::string_view field);

// Parses and checks a function; errors have paths within the Function. Expressions are tried with
// every loop; only a compiler can check a text.
absl::StatusOr<ClientFunction> ReadFunction(const v1::Function& function, std::string_view id);

// Adds a call of a ufunc with the types of the first loop that accepts the arguments, and returns
// all results. `data_type` is as in Ufunc, for the first result. Errors at `field`.
absl::StatusOr<std::vector<Value>> ApplyAll(ProgramBuilder& builder, const ClientFunction& function,
                                            absl::Span<const Argument> arguments,
                                            std::optional<DType> data_type, std::string_view field,
                                            Casting casting = Casting::kSameKind);

// Like ApplyAll, for a ufunc with one result; other functions are an error.
absl::StatusOr<Value> ApplyFunction(ProgramBuilder& builder, const ClientFunction& function,
                                    absl::Span<const Argument> arguments,
                                    std::optional<DType> data_type, std::string_view field,
                                    Casting casting = Casting::kSameKind);

// Returns the first loop to whose input types all arguments cast safely. With `data_type`, returns
// the first loop with that result type whose inputs accept the arguments under `casting`.
// DATA_TYPE_MISMATCH otherwise.
absl::StatusOr<const ClientFunction::Loop*> ChooseLoop(const ClientFunction& function,
                                                       absl::Span<const ArgumentType> arguments,
                                                       std::optional<DType> data_type,
                                                       std::string_view field, Casting casting);

// Adds `body` applied to `arguments`, which already have the loop's types. Returns the result in
// the compute type of `result`.
absl::StatusOr<Value> CallBody(ProgramBuilder& builder, const FunctionBody& body,
                               absl::Span<const Argument> arguments, DType result,
                               std::string_view field);

}  // namespace stride::ops
