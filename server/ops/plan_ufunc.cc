#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/op_table.h"
#include "server/ops/operation_kind.h"

namespace stride::ops {
namespace {

constexpr char kInputs[] = "ufunc.inputs";
constexpr char kWhere[] = "ufunc.where";

absl::Status UnknownFunction(const std::string& name) {
  std::string suggestion = SuggestOp(name);
  ErrorMetadata metadata = {{"function", name}};
  if (!suggestion.empty()) metadata.emplace_back("suggestion", suggestion);
  return InvalidField(
      v1::ERROR_REASON_UNKNOWN_FUNCTION, "ufunc.function",
      absl::StrCat("no such function",
                   suggestion.empty() ? "" : absl::StrCat("; did you mean ", suggestion, "?"), ": ",
                   name),
      std::move(metadata));
}

std::string FieldOf(int i) { return absl::StrCat(kInputs, "[", i, "]"); }

// The rows whose results are the function's; empty when it is unknown.
std::vector<const OpRow*> RowsOf(const std::string& function) {
  if (const TwoOutputUfunc* two = FindTwoOutputUfunc(function))
    return {FindOp(two->first), FindOp(two->second)};
  const OpRow* row = FindOp(function);
  if (row == nullptr) return {};
  return {row};
}

// One row of a function with two outputs. `data_type` is the computation's, which is not the type
// of every output.
absl::StatusOr<Value> ApplyPart(ProgramBuilder& builder, const OpRow& row,
                                const std::vector<Argument>& arguments,
                                std::optional<DType> data_type, Casting casting) {
  if (!data_type || row.result == ResultRule::kSame)
    return Apply(builder, row, arguments, data_type, kInputs, casting);
  std::vector<Argument> cast;
  for (const Argument& argument : arguments) {
    auto value = ToValue(builder, argument, kInputs);
    if (!value.ok()) return value.status();
    cast.emplace_back(builder.Cast(*value, *data_type));
  }
  return Apply(builder, row, cast, std::nullopt, kInputs);
}

// Where the mask is false, the existing output's element or zero.
absl::StatusOr<Value> Masked(ProgramBuilder& builder, Value mask, Value result,
                             const ArrayInfo& output, const Input& existing, uint32_t slot) {
  Value kept;
  if (existing) {
    kept = builder.Input(slot, output.dtype);
  } else {
    auto zero = EncodeScalar(Integer{0}, output.dtype, kWhere);
    if (!zero.ok()) return zero.status();
    kept = builder.Constant(*zero);
  }
  return builder.Op("where", {mask, builder.Cast(result, output.dtype), kept}, output.dtype);
}

absl::StatusOr<Value> ReadMask(ProgramBuilder& builder, const v1::Operand& operand,
                               const Input& input, uint32_t slot) {
  auto argument = ToArgument(builder, operand, input, slot, kWhere);
  if (!argument.ok()) return argument.status();
  auto mask = ToValue(builder, *argument, kWhere);
  if (!mask.ok()) return mask.status();
  if (IsBool(mask->dtype)) return *mask;
  return InvalidField(
      v1::ERROR_REASON_DATA_TYPE_MISMATCH, kWhere,
      absl::StrCat("the mask is an array of bool, not of ", std::string(Name(mask->dtype))));
}

}  // namespace

int NumUfuncResults(std::string_view function, const FunctionTable* functions) {
  if (FindTwoOutputUfunc(function) != nullptr) return 2;
  if (FindOp(function) != nullptr || functions == nullptr) return 1;
  const ClientFunction* own = functions->Find(function);
  return own == nullptr ? 1 : static_cast<int>(own->num_outputs);
}

absl::StatusOr<Plan> PlanUfunc(const v1::Ufunc& ufunc, Inputs inputs,
                               absl::Span<const Input> existing, const FunctionTable* functions) {
  const std::vector<const OpRow*> rows = RowsOf(ufunc.function());
  const ClientFunction* own =
      rows.empty() && functions != nullptr ? functions->Find(ufunc.function()) : nullptr;
  if (rows.empty() && own == nullptr) return UnknownFunction(ufunc.function());
  auto data_type = ReadDataType(ufunc.data_type(), "ufunc.data_type");
  if (!data_type.ok()) return data_type.status();
  auto casting = ReadCasting(ufunc.casting(), "ufunc.casting");
  if (!casting.ok()) return casting.status();

  ProgramBuilder builder;
  std::vector<Argument> arguments;
  std::vector<Shape> shapes;
  for (int i = 0; i < ufunc.inputs_size(); ++i) {
    auto argument =
        ToArgument(builder, ufunc.inputs(i), inputs[i], static_cast<uint32_t>(i), FieldOf(i));
    if (!argument.ok()) return argument.status();
    arguments.push_back(*argument);
    if (inputs[i]) shapes.push_back(inputs[i]->shape);
  }
  std::vector<Value> results;
  if (own != nullptr) {
    auto values = ApplyAll(builder, *own, arguments, *data_type, kInputs, *casting);
    if (!values.ok()) return values.status();
    results = *std::move(values);
  }
  for (const OpRow* row : rows) {
    auto value = rows.size() == 1 ? Apply(builder, *row, arguments, *data_type, kInputs, *casting)
                                  : ApplyPart(builder, *row, arguments, *data_type, *casting);
    if (!value.ok()) return value.status();
    results.push_back(*value);
  }
  auto shape = BroadcastShapes(shapes, kInputs);
  if (!shape.ok()) return shape.status();

  std::optional<Value> mask;
  if (ufunc.has_where()) {
    const uint32_t slot = static_cast<uint32_t>(ufunc.inputs_size());
    auto read = ReadMask(builder, ufunc.where(), inputs[slot], slot);
    if (!read.ok()) return read.status();
    mask = *read;
    if (inputs[slot]) {
      shape = BroadcastShapes({*shape, inputs[slot]->shape}, kWhere);
      if (!shape.ok()) return shape.status();
    }
  }
  std::vector<ArrayInfo> outputs;
  for (size_t j = 0; j < results.size(); ++j) {
    const Input target = j < existing.size() ? existing[j] : Input();
    auto output =
        ChooseOutput(results[j].dtype, *shape, target, absl::StrCat("outputs[", j, "]"), *casting);
    if (!output.ok()) return output.status();
    outputs.push_back(*output);
    if (!mask) continue;
    auto masked = Masked(builder, *mask, results[j], outputs[j], target,
                         static_cast<uint32_t>(inputs.size() + j));
    if (!masked.ok()) return masked.status();
    results[j] = *masked;
  }
  return PlanLoop(builder, results, inputs, outputs, "ufunc");
}

namespace {

bool UfuncKey(const OperationView& operation, const TenantId&, KeyWriter& key) {
  const v1::Ufunc& ufunc = operation->ufunc();
  key.AddText(ufunc.function());
  key.Add(ufunc.data_type());
  key.Add(ufunc.casting());
  key.AddOperands(ufunc.inputs());
  key.Add(ufunc.has_where());
  if (ufunc.has_where()) key.AddOperand(ufunc.where());
  return true;
}

int UfuncResults(const v1::Operation& o, Inputs, const FunctionTable* functions) {
  return NumUfuncResults(o.ufunc().function(), functions);
}

}  // namespace

const OperationKind kUfuncKind = {
    .name = "ufunc",
    .detail = [](const v1::Operation& o) -> std::string { return o.ufunc().function(); },
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          list.AddEach(o.ufunc().inputs());
          if (o.ufunc().has_where()) list.Add(o.ufunc().where());
        },
    .plan = PlanBy<&v1::Operation::ufunc, PlanUfunc>,
    .rules = {UfuncResults, UfuncKey, BatchElementwise, DivideElementwise},
    .lists = Bounded<&v1::Operation::ufunc, kMaxListedInputs, &v1::Ufunc::inputs_size>,
    .batches_numbers = true,
    .keeps_output = [](const v1::Operation& o) { return o.ufunc().has_where(); },
};

}  // namespace stride::ops
