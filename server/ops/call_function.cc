#include "server/ops/client_function.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/base/error.h"
#include "server/ops/expression_lowering.h"

namespace stride::ops {
namespace {

// Larger code takes compilers minutes. One more call adds at most the body's terms.
constexpr int kMaxInstructions = 2048;

std::string TypeNames(absl::Span<const DType> types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DType d) { out->append(Name(d)); });
}

absl::Status CheckArity(const ClientFunction& function, size_t given, std::string_view field) {
  if (given == function.num_inputs) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, field,
                      absl::StrCat("the function takes another number of inputs: ", function.id,
                                   " takes ", function.num_inputs, ", not ", given),
                      {{"function", function.id}});
}

bool Takes(const ClientFunction::Loop& loop, absl::Span<const ArgumentType> arguments,
           absl::Span<const DType> types, Casting casting) {
  for (size_t i = 0; i < types.size(); ++i) {
    // A weak scalar casts to any type of its kind.
    const bool weak = std::holds_alternative<WeakScalar>(arguments[i]);
    const Casting asked = weak ? Casting::kSameKind : casting;
    if (!CanCast(types[i], loop.inputs[i], asked)) return false;
  }
  return true;
}

absl::StatusOr<Value> ToLoopType(ProgramBuilder& builder, const Argument& argument, DType dtype,
                                 std::string_view field) {
  if (const Value* value = std::get_if<Value>(&argument)) return builder.Cast(*value, dtype);
  auto encoded = EncodeScalar(std::get<WeakScalar>(argument), dtype, field);
  if (!encoded.ok()) return encoded.status();
  return builder.Constant(*encoded);
}

absl::StatusOr<Argument> CallExpression(ProgramBuilder& builder, const FunctionBody& body,
                                        absl::Span<const Argument> arguments,
                                        std::string_view field) {
  auto resolve = [&](const std::string& name) -> absl::StatusOr<std::optional<Argument>> {
    auto found = std::find(body.parameters.begin(), body.parameters.end(), name);
    if (found == body.parameters.end()) return std::nullopt;
    return arguments[static_cast<size_t>(found - body.parameters.begin())];
  };
  return LowerExpression(builder, body.expression, resolve, body.parameters, nullptr, field);
}

}  // namespace

absl::StatusOr<const ClientFunction::Loop*> ChooseLoop(const ClientFunction& function,
                                                       absl::Span<const ArgumentType> arguments,
                                                       std::optional<DType> data_type,
                                                       std::string_view field, Casting casting) {
  if (absl::Status status = CheckArity(function, arguments.size(), field); !status.ok())
    return status;
  const std::vector<DType> types = ResolveWeak(arguments);
  for (const ClientFunction::Loop& loop : function.loops) {
    if (data_type && loop.outputs[0] != *data_type) continue;
    if (Takes(loop, arguments, types, data_type ? casting : Casting::kSafe)) return &loop;
  }
  return InvalidField(
      v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
      absl::StrCat("none of the function's signatures takes these types",
                   data_type ? absl::StrCat(" and gives ", std::string(Name(*data_type))) : "",
                   ": ", function.id, "(", TypeNames(types), ")"),
      {{"function", function.id}});
}

absl::StatusOr<Value> CallBody(ProgramBuilder& builder, const FunctionBody& body,
                               absl::Span<const Argument> arguments, DType result,
                               std::string_view field) {
  if (builder.num_instructions() > kMaxInstructions) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, field,
        absl::StrCat("the operation is too large for one kernel; split it. It has more than ",
                     kMaxInstructions, " instructions"));
  }
  if (body.is_expression()) {
    auto made = CallExpression(builder, body, arguments, field);
    if (!made.ok()) return made.status();
    if (const auto* weak = std::get_if<WeakScalar>(&*made)) {
      auto encoded = EncodeScalar(*weak, result, field);
      if (!encoded.ok()) return encoded.status();
      return builder.Cast(builder.Constant(*encoded), ComputeType(result));
    }
    const Value value = std::get<Value>(*made);
    if (!CanCastSameKind(value.dtype, result)) {
      return InvalidField(
          v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
          absl::StrCat("the expression's result cannot be cast to the signature's without changing "
                       "its kind: ",
                       std::string(Name(value.dtype)), " to ", std::string(Name(result))));
    }
    return builder.Cast(builder.Cast(value, result), ComputeType(result));
  }
  std::vector<Value> values;
  for (const Argument& argument : arguments) {
    const Value value = std::get<Value>(argument);
    values.push_back(builder.Cast(value, ComputeType(value.dtype)));
  }
  return builder.Call(body.device_function, values, ComputeType(result));
}

namespace {

absl::Status CheckUfunc(const ClientFunction& function, size_t given, std::string_view field) {
  if (function.kind == ClientFunction::Kind::kUfunc) return CheckArity(function, given, field);
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      absl::StrCat("only a ufunc can be used here: ", function.id),
                      {{"function", function.id}});
}

std::vector<const FunctionBody*> BodiesOf(const ClientFunction& function) {
  std::vector<const FunctionBody*> bodies = {&function.body};
  for (const FunctionBody& body : function.more_bodies) bodies.push_back(&body);
  return bodies;
}

// Applies an expression without signatures: its arguments determine the types. `data_type` is the
// first result's type.
absl::StatusOr<std::vector<Value>> ApplyUntyped(ProgramBuilder& builder,
                                                const ClientFunction& function,
                                                absl::Span<const Argument> arguments,
                                                std::optional<DType> data_type,
                                                std::string_view field, Casting casting) {
  std::vector<Value> values;
  for (const FunctionBody* body : BodiesOf(function)) {
    auto made = CallExpression(builder, *body, arguments, field);
    if (!made.ok()) return made.status();
    auto value = ToValue(builder, *made, field);
    if (!value.ok()) return value.status();
    values.push_back(*value);
  }
  if (!data_type) return values;
  if (!CanCast(values[0].dtype, *data_type, casting)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
        absl::StrCat("the result cannot be cast to the type asked for: ",
                     std::string(Name(values[0].dtype)), " to ", std::string(Name(*data_type))));
  }
  values[0] = builder.Cast(values[0], *data_type);
  return values;
}

// `arguments` already have the loop's types.
absl::StatusOr<std::vector<Value>> CallLoop(ProgramBuilder& builder, const ClientFunction& function,
                                            const ClientFunction::Loop& loop,
                                            absl::Span<const Argument> arguments,
                                            std::string_view field) {
  std::vector<Value> values;
  if (function.num_outputs > 1 && !function.body.is_expression()) {
    std::vector<Value> computed;
    std::vector<DType> results;
    for (const Argument& argument : arguments) {
      const Value value = std::get<Value>(argument);
      computed.push_back(builder.Cast(value, ComputeType(value.dtype)));
    }
    for (DType dtype : loop.outputs) results.push_back(ComputeType(dtype));
    values = builder.CallSeveral(function.body.device_function, computed, results);
  } else {
    const auto bodies = BodiesOf(function);
    for (size_t j = 0; j < bodies.size(); ++j) {
      auto value = CallBody(builder, *bodies[j], arguments, loop.outputs[j], field);
      if (!value.ok()) return value.status();
      values.push_back(*value);
    }
  }
  for (size_t j = 0; j < values.size(); ++j) values[j] = builder.Cast(values[j], loop.outputs[j]);
  return values;
}

}  // namespace

absl::StatusOr<std::vector<Value>> ApplyAll(ProgramBuilder& builder, const ClientFunction& function,
                                            absl::Span<const Argument> arguments,
                                            std::optional<DType> data_type, std::string_view field,
                                            Casting casting) {
  if (absl::Status s = CheckUfunc(function, arguments.size(), field); !s.ok()) return s;
  if (function.loops.empty())
    return ApplyUntyped(builder, function, arguments, data_type, field, casting);
  std::vector<ArgumentType> types;
  for (const Argument& argument : arguments) {
    if (const Value* value = std::get_if<Value>(&argument)) {
      types.emplace_back(value->dtype);
    } else {
      types.emplace_back(std::get<WeakScalar>(argument));
    }
  }
  auto loop = ChooseLoop(function, types, data_type, field, casting);
  if (!loop.ok()) return loop.status();
  std::vector<Argument> converted;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto value = ToLoopType(builder, arguments[i], (*loop)->inputs[i], field);
    if (!value.ok()) return value.status();
    converted.emplace_back(*value);
  }
  return CallLoop(builder, function, **loop, converted, field);
}

absl::StatusOr<Value> ApplyFunction(ProgramBuilder& builder, const ClientFunction& function,
                                    absl::Span<const Argument> arguments,
                                    std::optional<DType> data_type, std::string_view field,
                                    Casting casting) {
  if (function.num_outputs != 1) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        absl::StrCat("only a function of one result can be used here: ",
                                     function.id, " has ", function.num_outputs),
                        {{"function", function.id}});
  }
  auto values = ApplyAll(builder, function, arguments, data_type, field, casting);
  if (!values.ok()) return values.status();
  return (*values)[0];
}

}  // namespace stride::ops
