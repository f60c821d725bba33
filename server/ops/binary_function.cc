#include "server/ops/binary_function.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/op_table.h"

namespace stride::ops {
namespace {

// Returns whether operands may be grouped in any way, so that several threads can share a row.
bool IsAssociative(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "add",        "multiply",    "maximum",     "minimum",    "fmax",        "fmin",
      "logical_or", "logical_and", "logical_xor", "bitwise_or", "bitwise_and", "bitwise_xor",
      "gcd",        "lcm",         "hypot",       "logaddexp",  "logaddexp2"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Returns the common type of the function's inputs and result.
absl::StatusOr<DType> TypeOf(const OpRow& row, const BinaryRequest& request) {
  const DType input = request.input;
  const std::optional<DType> data_type = request.data_type;
  const bool sums = !request.keeps_type && (row.name == "add" || row.name == "multiply");
  if (!data_type && sums && (IsBool(input) || IsInteger(input)))
    return IsUnsigned(input) ? DType::kUInt64 : DType::kInt64;
  if (row.rule == TypeRule::kLogical && data_type.value_or(DType::kBool) == DType::kBool)
    return DType::kBool;
  auto loop = ResolveLoop(row, {input, input}, data_type, request.input_field);
  if (!loop.ok()) return loop.status();
  if (loop->arguments[0] == loop->result && loop->arguments[1] == loop->result) return loop->result;
  return InvalidField(
      v1::ERROR_REASON_DATA_TYPE_MISMATCH, request.field,
      absl::StrCat(
          "the function's result has another type than its inputs: ", std::string(row.name), " of ",
          std::string(Name(loop->arguments[1])), " gives ", std::string(Name(loop->result))));
}

// Returns nullopt if the function has no identity.
absl::StatusOr<std::optional<wire::ScalarValue>> IdentityOf(const OpRow& row, DType dtype) {
  if (row.identity.empty()) return std::nullopt;
  absl::StatusOr<wire::ScalarValue> encoded;
  if (row.identity == "-inf") {
    encoded = EncodeScalar(-std::numeric_limits<double>::infinity(), dtype, "identity");
  } else if (row.identity == "-1" && (IsBool(dtype) || IsUnsigned(dtype))) {
    // All bits set, for any width.
    const Integer ones = IsBool(dtype) ? Integer{1} : (Integer{1} << (8 * ItemSize(dtype))) - 1;
    encoded = EncodeScalar(ones, dtype, "identity");
  } else if (row.identity == "-1") {
    encoded = EncodeScalar(Integer{-1}, dtype, "identity");
  } else {
    const bool one = row.identity == "1" || row.identity == "true";
    encoded = EncodeScalar(Integer{one ? 1 : 0}, dtype, "identity");
  }
  if (!encoded.ok()) return encoded.status();
  return *encoded;
}

absl::Status NotBinary(const BinaryRequest& request, bool known) {
  const std::string name(request.name);
  return InvalidField(
      known ? v1::ERROR_REASON_INVALID_FIELD : v1::ERROR_REASON_UNKNOWN_FUNCTION, request.field,
      absl::StrCat(known ? "only a function of two inputs and one result can be used here: "
                         : "no such function: ",
                   name),
      {{"function", name}});
}

absl::StatusOr<BinaryFunction> WithProgram(BinaryFunction function, std::string_view field) {
  ProgramBuilder combine;
  combine.MakeConstantsLiteral();
  const Value left = combine.Input(0, function.accumulator);
  const Value right = combine.Input(1, function.accumulator);
  auto result = CombineValues(combine, function, left, right, field);
  if (!result.ok()) return result.status();
  function.combine = combine.Finish({*result});
  return function;
}

absl::StatusOr<BinaryFunction> BuiltIn(const OpRow& row, const BinaryRequest& request) {
  auto dtype = TypeOf(row, request);
  if (!dtype.ok()) return dtype.status();
  BinaryFunction function;
  function.name = std::string(row.name);
  function.dtype = *dtype;
  function.accumulator = ComputeType(row, *dtype);
  function.associative = IsAssociative(row.name);
  auto identity = IdentityOf(row, function.accumulator);
  if (!identity.ok()) return identity.status();
  function.identity = *identity;
  function.row = &row;
  return WithProgram(std::move(function), request.field);
}

// Returns the first loop that accepts the elements and whose inputs and result have one type.
absl::StatusOr<DType> AgreedType(const ClientFunction& own, const BinaryRequest& request) {
  if (own.loops.empty()) return request.data_type.value_or(request.input);
  for (const ClientFunction::Loop& loop : own.loops) {
    const DType dtype = loop.outputs[0];
    if (loop.inputs[0] != dtype || loop.inputs[1] != dtype) continue;
    if (request.data_type ? *request.data_type == dtype && CanCastSameKind(request.input, dtype)
                          : CanCastSafely(request.input, dtype))
      return dtype;
  }
  return InvalidField(
      v1::ERROR_REASON_DATA_TYPE_MISMATCH, request.input_field,
      absl::StrCat("none of the function's signatures whose inputs and result agree takes this "
                   "type: ",
                   own.id, " of ", std::string(Name(request.input))),
      {{"function", own.id}});
}

absl::StatusOr<BinaryFunction> Own(const ClientFunction& own, const BinaryRequest& request) {
  auto dtype = AgreedType(own, request);
  if (!dtype.ok()) return dtype.status();
  BinaryFunction function;
  function.name = own.id;
  function.dtype = *dtype;
  function.accumulator = ComputeType(*dtype);
  function.associative = own.associative;
  function.own = &own;
  if (own.identity) {
    auto identity = EncodeScalar(*own.identity, function.accumulator, request.field);
    if (!identity.ok()) return identity.status();
    function.identity = *identity;
  }
  return WithProgram(std::move(function), request.field);
}

}  // namespace

absl::StatusOr<BinaryFunction> FindBinaryFunction(const BinaryRequest& request,
                                                  const FunctionTable* functions) {
  if (const OpRow* row = FindOp(request.name))
    return row->arity == 2 ? BuiltIn(*row, request) : NotBinary(request, true);
  if (FindTwoOutputUfunc(request.name) != nullptr) return NotBinary(request, true);
  const ClientFunction* own = functions != nullptr ? functions->Find(request.name) : nullptr;
  if (own == nullptr) return NotBinary(request, false);
  const bool binary = own->kind == ClientFunction::Kind::kUfunc && own->num_inputs == 2;
  return binary ? Own(*own, request) : NotBinary(request, true);
}

absl::StatusOr<Value> CombineValues(ProgramBuilder& builder, const BinaryFunction& function,
                                    Value left, Value right, std::string_view field) {
  if (function.row != nullptr)
    return builder.Op(function.row->name, {left, right}, function.accumulator);
  const Value a = builder.Cast(left, function.dtype), b = builder.Cast(right, function.dtype);
  auto result = ApplyFunction(builder, *function.own, {a, b}, function.dtype, field);
  if (!result.ok()) return result.status();
  return builder.Cast(*result, function.accumulator);
}

wire::RoutineCode::ProgramCode CombineCode(const BinaryFunction& function) {
  wire::RoutineCode::ProgramCode code;
  *code.mutable_program() = function.combine;
  code.add_input_dtypes(static_cast<int>(function.accumulator));
  code.add_input_dtypes(static_cast<int>(function.accumulator));
  code.set_output_dtype(static_cast<int>(function.accumulator));
  return code;
}

}  // namespace stride::ops
