#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/op_table.h"

namespace stride::ops {
namespace {

absl::Status UnknownFunction(const std::string& name) {
  if (IsTwoOutputUfunc(name)) {
    return NotImplemented(absl::StrCat("ufunc.", name),
                          absl::StrCat("ufuncs with two outputs are not implemented yet: ", name));
  }
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

std::string FieldOf(int i) { return absl::StrCat("ufunc.inputs[", i, "]"); }

}  // namespace

absl::StatusOr<Plan> PlanUfunc(const v1::Ufunc& ufunc, Inputs inputs, const Input& existing) {
  const OpRow* row = FindOp(ufunc.function());
  if (row == nullptr) return UnknownFunction(ufunc.function());
  auto data_type = ReadDataType(ufunc.data_type(), "ufunc.data_type");
  if (!data_type.ok()) return data_type.status();

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
  auto value = Apply(builder, *row, arguments, *data_type, "ufunc.inputs");
  if (!value.ok()) return value.status();
  auto shape = BroadcastShapes(shapes, "ufunc.inputs");
  if (!shape.ok()) return shape.status();
  auto output = ChooseOutput(value->dtype, *shape, existing);
  if (!output.ok()) return output.status();
  return PlanLoop(builder, *value, inputs, *output, "ufunc", std::string(row->name));
}

}  // namespace stride::ops
