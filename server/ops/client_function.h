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

// Functions that clients define. Their CUDA C++ text is data here.
namespace stride::ops {

// What a function of values computes: one of the two is set.
struct FunctionBody {
  std::vector<std::string> parameters;  // of the expression
  ExpressionTree expression;
  wire::DeviceFunction device_function;
  bool is_expression() const { return !expression.empty(); }
};
inline constexpr size_t kMaxFunctionResults = 8;

// A function as it was registered, read and checked. Immutable.
struct ClientFunction {
  enum class Kind { kUfunc, kReduction, kGufunc };
  struct Loop {
    std::vector<DType> inputs;
    DType accumulator = DType::kBool;  // reductions; else the first output
    std::vector<DType> outputs;
  };
  Kind kind = Kind::kUfunc;
  std::string id;
  std::string device_kind;  // devices it was made for; empty: every kind
  size_t num_inputs = 0;
  std::vector<Loop> loops;                // none: an expression that is typed where it is used
  FunctionBody body;                      // of ufuncs and gufuncs
  size_t num_outputs = 1;                 // of ufuncs
  std::vector<FunctionBody> more_bodies;  // expressions of the results after the first
  std::optional<FunctionBody> map, finish;
  FunctionBody combine;
  std::optional<WeakScalar> identity;
  bool associative = false;
  CoreLayout layout;
};

// Where planners look up what is not built in.
class FunctionTable {
 public:
  virtual ~FunctionTable() = default;
  // nullptr when there is none; valid while the operation is planned.
  virtual const ClientFunction* Find(std::string_view name) const = 0;
};

// A name as in C that nothing built in has. INVALID_FIELD at `field`.
absl::Status CheckFunctionId(std::string_view id, std::string_view field);

// INVALID_FIELD and the like with paths within the Function. Expressions are tried with every loop;
// whether a text compiles only a compiler knows.
absl::StatusOr<ClientFunction> ReadFunction(const v1::Function& function, std::string_view id);

// Adds a call of a ufunc, with the types of the first loop that takes the arguments; all its
// results. `data_type` as in Ufunc, of the first. Errors at `field`.
absl::StatusOr<std::vector<Value>> ApplyAll(ProgramBuilder& builder, const ClientFunction& function,
                                            absl::Span<const Argument> arguments,
                                            std::optional<DType> data_type, std::string_view field,
                                            Casting casting = Casting::kSameKind);

// The same of a ufunc of one result; others are refused.
absl::StatusOr<Value> ApplyFunction(ProgramBuilder& builder, const ClientFunction& function,
                                    absl::Span<const Argument> arguments,
                                    std::optional<DType> data_type, std::string_view field,
                                    Casting casting = Casting::kSameKind);

// The first loop to whose input types all arguments cast safely, or with `data_type` the first that
// gives that type and whose inputs take the arguments under `casting`. DATA_TYPE_MISMATCH.
absl::StatusOr<const ClientFunction::Loop*> ChooseLoop(const ClientFunction& function,
                                                       absl::Span<const ArgumentType> arguments,
                                                       std::optional<DType> data_type,
                                                       std::string_view field, Casting casting);

// `body` of values that have these types; the result, in its compute type, as `result`.
absl::StatusOr<Value> CallBody(ProgramBuilder& builder, const FunctionBody& body,
                               absl::Span<const Argument> arguments, DType result,
                               std::string_view field);

}  // namespace stride::ops
