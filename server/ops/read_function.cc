#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/client_function.h"
#include "server/ops/op_table.h"
#include "server/ops/rename_fields.h"

// Converts a client's definition into a ClientFunction.
namespace stride::ops {
namespace {

using Loop = ClientFunction::Loop;

constexpr int kMaxLoops = 64;
constexpr size_t kMaxSourceBytes = 64 << 10;
// Each call adds the whole body to a program.
constexpr size_t kMaxBodyNodes = 256;
constexpr int kMaxParameters = 32;

absl::Status Wrong(std::string_view field, std::string_view text) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, text);
}

bool IsTaken(std::string_view id) {
  constexpr std::string_view kNames[] = {"pi",  "e",      "inf",    "nan",    "True",   "False",
                                         "and", "or",     "not",    "if",     "else",   "in",
                                         "is",  "lambda", "matmul", "vecdot", "matvec", "vecmat"};
  return FindOp(id) != nullptr || FindTwoOutputUfunc(id) != nullptr ||
         std::find(std::begin(kNames), std::end(kNames), id) != std::end(kNames);
}

absl::Status ReadExpression(const v1::ExpressionBody& message, const std::string& field,
                            FunctionBody* body) {
  if (message.parameters_size() == 0 || message.parameters_size() > kMaxParameters) {
    return Wrong(absl::StrCat(field, ".parameters"),
                 absl::StrCat("an expression has from 1 to ", kMaxParameters, " parameters"));
  }
  std::set<std::string> known;
  for (int i = 0; i < message.parameters_size(); ++i) {
    const std::string& name = message.parameters(i);
    const std::string path = absl::StrCat(field, ".parameters[", i, "]");
    if (!IsIdentifier(name)) return Wrong(path, "must be a name as in C");
    if (!known.insert(name).second)
      return Wrong(path, absl::StrCat("two parameters have this name: ", name));
    body->parameters.push_back(name);
  }
  auto tree = ParseExpression(message.text());
  if (!tree.ok())
    return PrefixField(tree.status(), field.substr(0, field.size() - sizeof("expression") + 1));
  if (tree->size() > kMaxBodyNodes) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, absl::StrCat(field, ".text"),
                        absl::StrCat("the expression has too many terms for a function's; at most ",
                                     kMaxBodyNodes));
  }
  body->expression = *std::move(tree);
  return absl::OkStatus();
}

absl::Status ReadDeviceFunction(const v1::DeviceFunctionBody& message, const std::string& field,
                                FunctionBody* body) {
  if (message.source().empty() || message.source().size() > kMaxSourceBytes) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, absl::StrCat(field, ".source"),
        absl::StrCat("from 1 to ", kMaxSourceBytes, " bytes. Got: ", message.source().size()));
  }
  if (message.source().find('\0') != std::string::npos)
    return Wrong(absl::StrCat(field, ".source"), "the source has a zero byte");
  if (!IsIdentifier(message.entry()))
    return Wrong(absl::StrCat(field, ".entry"), "must be the name of a function in the source");
  body->device_function.set_source(message.source());
  body->device_function.set_entry(message.entry());
  return absl::OkStatus();
}

absl::StatusOr<FunctionBody> ReadBody(const v1::FunctionBody& message, const std::string& field,
                                      size_t num_inputs) {
  FunctionBody body;
  switch (message.kind_case()) {
    case v1::FunctionBody::kExpression: {
      if (message.expression().more_texts_size() > 0 && field != "ufunc.body") {
        return Wrong(absl::StrCat(field, ".expression.more_texts"), "this function has one result");
      }
      absl::Status status =
          ReadExpression(message.expression(), absl::StrCat(field, ".expression"), &body);
      if (!status.ok()) return status;
      if (num_inputs != 0 && body.parameters.size() != num_inputs) {
        return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT,
                            absl::StrCat(field, ".expression.parameters"),
                            absl::StrCat("one name for each argument: ", num_inputs, ", not ",
                                         body.parameters.size()));
      }
      return body;
    }
    case v1::FunctionBody::kDeviceFunction: {
      absl::Status status = ReadDeviceFunction(message.device_function(),
                                               absl::StrCat(field, ".device_function"), &body);
      if (!status.ok()) return status;
      return body;
    }
    default:
      return Wrong(field, "a body is an expression or a device function");
  }
}

using Signatures = google::protobuf::RepeatedPtrField<std::string>;

// Reads loops whose signatures have `least` to `most` arrows and the same numbers of types.
absl::Status ReadLoops(const Signatures& signatures, const std::string& field, size_t least,
                       size_t most, size_t num_outputs, ClientFunction* function) {
  if (signatures.size() > kMaxLoops) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                        absl::StrCat("at most ", kMaxLoops, " signatures"));
  }
  for (int i = 0; i < signatures.size(); ++i) {
    const std::string path = absl::StrCat(field, "[", i, "]");
    auto groups = ParseTypes(signatures[i], path);
    if (!groups.ok()) return groups.status();
    const size_t arrows = groups->size() - 1;
    if (arrows < least || arrows > most) {
      return Wrong(path, most == 1 ? "a signature is such as `float32,int64->float64`"
                                   : "a signature is such as `float32->float64->float32`: inputs, "
                                     "what values are combined in, result");
    }
    Loop loop{groups->front(), groups->back()[0], groups->back()};
    if (arrows == 2) {
      if ((*groups)[1].size() != 1) return Wrong(path, "values are combined in one type");
      loop.accumulator = (*groups)[1][0];
    }
    if (loop.outputs.size() != num_outputs) {
      return Wrong(path, absl::StrCat("another number of results than there are: ",
                                      loop.outputs.size(), ", not ", num_outputs));
    }
    if (function->num_inputs != 0 && loop.inputs.size() != function->num_inputs) {
      return Wrong(path, absl::StrCat("another number of inputs than before: ", loop.inputs.size(),
                                      ", not ", function->num_inputs));
    }
    function->num_inputs = loop.inputs.size();
    function->loops.push_back(std::move(loop));
  }
  return absl::OkStatus();
}

// Checks that the body returns the result's type for arguments of these types.
absl::Status TryBody(const FunctionBody& body, absl::Span<const DType> inputs, DType result,
                     const std::string& field) {
  if (!body.is_expression()) return absl::OkStatus();
  ProgramBuilder builder;
  std::vector<Argument> arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments.emplace_back(builder.Input(static_cast<uint32_t>(i), inputs[i]));
  return CallBody(builder, body, arguments, result, absl::StrCat(field, ".expression.text"))
      .status();
}

absl::Status ReadIdentity(const v1::Scalar& scalar, const std::string& field,
                          ClientFunction* function) {
  auto read = ReadScalar(scalar, field);
  if (!read.ok()) return read.status();
  function->identity = read->value;
  for (const Loop& loop : function->loops) {
    auto fits = EncodeScalar(*function->identity, loop.accumulator, field);
    if (!fits.ok()) return fits.status();
  }
  return absl::OkStatus();
}

// Returns the number of results: the expression's, else the first signature's.
absl::StatusOr<size_t> CountResults(const v1::UfuncDefinition& ufunc) {
  size_t count = 1 + static_cast<size_t>(ufunc.body().expression().more_texts_size());
  if (!ufunc.body().has_expression() && ufunc.signatures_size() > 0) {
    auto groups = ParseTypes(ufunc.signatures(0), "ufunc.signatures[0]");
    if (!groups.ok()) return groups.status();
    count = groups->back().size();
  }
  if (count <= kMaxFunctionResults) return count;
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT,
      ufunc.body().has_expression() ? "ufunc.body.expression.more_texts" : "ufunc.signatures[0]",
      absl::StrCat("at most ", kMaxFunctionResults, " results"));
}

// Further results are expressions of the same parameters.
absl::Status ReadMoreBodies(const v1::ExpressionBody& first, ClientFunction* function) {
  for (int i = 0; i < first.more_texts_size(); ++i) {
    v1::ExpressionBody more;
    more.set_text(first.more_texts(i));
    *more.mutable_parameters() = first.parameters();
    FunctionBody body;
    const absl::Status status = ReadExpression(more, "ufunc.body.expression", &body);
    if (!status.ok()) {
      return RenameFields(status, {{"ufunc.body.expression.text",
                                    absl::StrCat("ufunc.body.expression.more_texts[", i, "]")}});
    }
    function->more_bodies.push_back(std::move(body));
  }
  return absl::OkStatus();
}

absl::Status ReadUfunc(const v1::UfuncDefinition& ufunc, ClientFunction* function) {
  function->kind = ClientFunction::Kind::kUfunc;
  auto num_outputs = CountResults(ufunc);
  if (!num_outputs.ok()) return num_outputs.status();
  function->num_outputs = *num_outputs;
  absl::Status status =
      ReadLoops(ufunc.signatures(), "ufunc.signatures", 1, 1, *num_outputs, function);
  if (!status.ok()) return status;
  auto body = ReadBody(ufunc.body(), "ufunc.body", function->num_inputs);
  if (!body.ok()) return body.status();
  function->body = *std::move(body);
  status = ReadMoreBodies(ufunc.body().expression(), function);
  if (!status.ok()) return status;
  if (function->loops.empty()) {
    if (!function->body.is_expression())
      return Wrong("ufunc.signatures", "a device function needs at least one signature");
    function->num_inputs = function->body.parameters.size();
  }
  for (const Loop& loop : function->loops) {
    status = TryBody(function->body, loop.inputs, loop.outputs[0], "ufunc.body");
    if (!status.ok()) return status;
    for (size_t j = 0; j < function->more_bodies.size(); ++j) {
      status = TryBody(function->more_bodies[j], loop.inputs, loop.outputs[j + 1], "ufunc.body");
      if (status.ok()) continue;
      return RenameFields(status, {{"ufunc.body.expression.text",
                                    absl::StrCat("ufunc.body.expression.more_texts[", j, "]")}});
    }
  }
  if ((ufunc.has_identity() || ufunc.associative()) &&
      (function->num_inputs != 2 || function->num_outputs != 1))
    return Wrong(ufunc.has_identity() ? "ufunc.identity" : "ufunc.associative",
                 "only a function of two inputs and one result reduces");
  function->associative = ufunc.associative();
  return ufunc.has_identity() ? ReadIdentity(ufunc.identity(), "ufunc.identity", function)
                              : absl::OkStatus();
}

absl::Status ReadReduction(const v1::ReductionDefinition& reduction, ClientFunction* function) {
  function->kind = ClientFunction::Kind::kReduction;
  function->associative = true;
  absl::Status status =
      ReadLoops(reduction.signatures(), "reduction.signatures", 1, 2, 1, function);
  if (!status.ok()) return status;
  if (function->loops.empty())
    return Wrong("reduction.signatures", "a reduction needs at least one signature");
  auto combine = ReadBody(reduction.combine(), "reduction.combine", 2);
  if (!combine.ok()) return combine.status();
  function->combine = *std::move(combine);
  if (reduction.has_map()) {
    auto map = ReadBody(reduction.map(), "reduction.map", function->num_inputs);
    if (!map.ok()) return map.status();
    function->map = *std::move(map);
  } else if (function->num_inputs != 1) {
    return Wrong("reduction.map", "needed where there are several inputs");
  }
  if (reduction.has_finish()) {
    auto finish = ReadBody(reduction.finish(), "reduction.finish", 1);
    if (!finish.ok()) return finish.status();
    function->finish = *std::move(finish);
  }
  for (size_t i = 0; i < function->loops.size(); ++i) {
    const Loop& loop = function->loops[i];
    if (function->map) {
      status = TryBody(*function->map, loop.inputs, loop.accumulator, "reduction.map");
      if (!status.ok()) return status;
    }
    status = TryBody(function->combine, {loop.accumulator, loop.accumulator}, loop.accumulator,
                     "reduction.combine");
    if (!status.ok()) return status;
    if (function->finish) {
      status = TryBody(*function->finish, {loop.accumulator}, loop.outputs[0], "reduction.finish");
      if (!status.ok()) return status;
    }
    if ((!function->map && !CanCastSameKind(loop.inputs[0], loop.accumulator)) ||
        (!function->finish && !CanCastSameKind(loop.accumulator, loop.outputs[0]))) {
      return Wrong(absl::StrCat("reduction.signatures[", i, "]"),
                   "types of different kinds need a map or a finish between them");
    }
  }
  return reduction.has_identity()
             ? ReadIdentity(reduction.identity(), "reduction.identity", function)
             : absl::OkStatus();
}

absl::Status ReadGufunc(const v1::GufuncDefinition& gufunc, ClientFunction* function) {
  function->kind = ClientFunction::Kind::kGufunc;
  auto layout = ParseLayout(gufunc.layout(), "gufunc.layout");
  if (!layout.ok()) return layout.status();
  function->layout = *std::move(layout);
  function->num_inputs = function->layout.num_inputs;
  const size_t num_outputs = function->layout.operands.size() - function->num_inputs;
  absl::Status status =
      ReadLoops(gufunc.signatures(), "gufunc.signatures", 1, 1, num_outputs, function);
  if (!status.ok()) return status;
  if (function->loops.empty())
    return Wrong("gufunc.signatures", "a gufunc needs at least one signature");
  return ReadDeviceFunction(gufunc.body(), "gufunc.body", &function->body);
}

}  // namespace

absl::Status CheckFunctionId(std::string_view id, std::string_view field) {
  if (!IsIdentifier(id)) return Wrong(field, "a name as in C, of at most 63 bytes");
  if (!IsTaken(id)) return absl::OkStatus();
  return Wrong(field,
               absl::StrCat("a built-in function or constant has this name: ", std::string(id)));
}

absl::StatusOr<ClientFunction> ReadFunction(const v1::Function& function, std::string_view id) {
  ClientFunction read;
  read.id = std::string(id);
  absl::Status status;
  switch (function.kind_case()) {
    case v1::Function::kUfunc:
      status = ReadUfunc(function.ufunc(), &read);
      break;
    case v1::Function::kReduction:
      status = ReadReduction(function.reduction(), &read);
      break;
    case v1::Function::kGufunc:
      status = ReadGufunc(function.gufunc(), &read);
      break;
    default:
      status = Wrong("kind", "a function is a ufunc, a reduction or a gufunc");
  }
  if (!status.ok()) return status;
  return read;
}

}  // namespace stride::ops
