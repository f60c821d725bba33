#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/op_table.h"
#include "server/ops/planners.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kInputs[] = "gufunc.inputs";

std::string FieldOf(size_t i) { return absl::StrCat(kInputs, "[", i, "]"); }

const ClientFunction* FindGufunc(const v1::Gufunc& gufunc, const FunctionTable* functions) {
  return functions == nullptr ? nullptr : functions->Find(gufunc.function());
}

// The layout with what the operands tell.
struct Cores {
  std::vector<bool> missing;   // of the layout's dimensions
  std::vector<int64_t> sizes;  // likewise; 1 of missing ones
  std::vector<size_t> ranks;   // of each operand's core, without missing dimensions
  Shape loop;                  // to which what is before the cores broadcasts
};

// As NumPy does: an operand with too few axes lacks optional dimensions, one after another, which
// all operands then lack.
absl::Status DropMissing(const CoreLayout& layout, const std::vector<ArrayInfo>& inputs,
                         Cores* cores) {
  cores->missing.assign(layout.dimensions.size(), false);
  for (const auto& operand : layout.operands) cores->ranks.push_back(operand.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t rank = inputs[i].shape.size();
    for (int dimension : layout.operands[i]) {
      if (rank >= cores->ranks[i]) break;
      if (!layout.dimensions[dimension].optional || cores->missing[dimension]) continue;
      cores->missing[dimension] = true;
      for (size_t j = 0; j < layout.operands.size(); ++j) {
        cores->ranks[j] -= static_cast<size_t>(
            std::count(layout.operands[j].begin(), layout.operands[j].end(), dimension));
      }
    }
    if (rank >= cores->ranks[i]) continue;
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, FieldOf(i),
                        absl::StrCat("the array has fewer axes than the layout needs: ", rank,
                                     ", not ", cores->ranks[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(const CoreLayout& layout, const std::vector<ArrayInfo>& inputs,
                       Cores* cores) {
  std::vector<std::optional<int64_t>> sizes(layout.dimensions.size());
  for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = layout.dimensions[d].fixed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t axis = inputs[i].shape.size() - cores->ranks[i];
    for (int dimension : layout.operands[i]) {
      if (cores->missing[dimension]) continue;
      const int64_t extent = inputs[i].shape[axis++];
      std::optional<int64_t>& size = sizes[dimension];
      if (size && *size != extent) {
        return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, FieldOf(i),
                            absl::StrCat("the array does not fit the layout's dimension ",
                                         layout.dimensions[dimension].name, ", which is ", *size,
                                         ", not ", extent));
      }
      size = extent;
    }
  }
  for (size_t d = 0; d < sizes.size(); ++d)
    cores->sizes.push_back(cores->missing[d] ? 1 : sizes[d].value_or(1));
  return absl::OkStatus();
}

absl::StatusOr<Cores> ReadCores(const CoreLayout& layout, const std::vector<ArrayInfo>& inputs) {
  Cores cores;
  if (absl::Status status = DropMissing(layout, inputs, &cores); !status.ok()) return status;
  if (absl::Status status = ReadSizes(layout, inputs, &cores); !status.ok()) return status;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i)
    shapes.emplace_back(inputs[i].shape.begin(), inputs[i].shape.end() - cores.ranks[i]);
  auto loop = BroadcastShapes(shapes, kInputs);
  if (!loop.ok()) return loop.status();
  cores.loop = *std::move(loop);
  return cores;
}

RoutineOperand OperandOf(const CoreLayout& layout, const Cores& cores, size_t number,
                         const ArrayInfo& array) {
  RoutineOperand operand{.slot = static_cast<uint32_t>(number), .array = array};
  ArrayInfo outer = array;
  outer.shape.resize(array.shape.size() - cores.ranks[number]);
  outer.strides.resize(outer.shape.size());
  operand.strides = BroadcastStrides(outer, cores.loop);
  size_t axis = outer.shape.size();
  for (int dimension : layout.operands[number]) {
    if (cores.missing[dimension]) {
      operand.own_extents.push_back(1);
      operand.own_strides.push_back(ItemSize(array.dtype));
    } else {
      operand.AddOwn(axis++);
    }
  }
  return operand;
}

absl::Status UnknownFunction(const std::string& name, bool known) {
  return InvalidField(
      known ? v1::ERROR_REASON_INVALID_FIELD : v1::ERROR_REASON_UNKNOWN_FUNCTION, "gufunc.function",
      absl::StrCat(known ? "the function is no gufunc: " : "no such gufunc: ", name),
      {{"function", name}});
}

}  // namespace

int NumGufuncResults(const v1::Gufunc& gufunc, const FunctionTable* functions) {
  const ClientFunction* own = FindGufunc(gufunc, functions);
  if (own == nullptr || own->kind != ClientFunction::Kind::kGufunc) return 1;
  return static_cast<int>(own->layout.operands.size() - own->layout.num_inputs);
}

absl::StatusOr<Plan> PlanGufunc(const v1::Gufunc& gufunc, Inputs inputs,
                                absl::Span<const Input> existing, const FunctionTable* functions) {
  if (IsBuiltInGufunc(gufunc.function()))
    return PlanBuiltInGufunc(gufunc, inputs, existing.empty() ? Input() : existing[0]);
  const ClientFunction* own = FindGufunc(gufunc, functions);
  if (own == nullptr || own->kind != ClientFunction::Kind::kGufunc)
    return UnknownFunction(gufunc.function(),
                           own != nullptr || FindOp(gufunc.function()) != nullptr);
  auto data_type = ReadDataType(gufunc.data_type(), "gufunc.data_type");
  if (!data_type.ok()) return data_type.status();
  std::vector<ArrayInfo> arrays;
  std::vector<ArgumentType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto array = NeedArray(inputs[i], FieldOf(i));
    if (!array.ok()) return array.status();
    types.emplace_back(array->dtype);
    arrays.push_back(*std::move(array));
  }
  auto loop = ChooseLoop(*own, types, *data_type, kInputs, Casting::kSameKind);
  if (!loop.ok()) return loop.status();
  const CoreLayout& layout = own->layout;
  auto cores = ReadCores(layout, arrays);
  if (!cores.ok()) return cores.status();

  RoutineSpec spec;
  bool converts = false, copies = false;
  std::vector<std::optional<DType>> conversions;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool other = arrays[i].dtype != (*loop)->inputs[i];
    converts |= other;
    conversions.push_back(other ? std::optional<DType>((*loop)->inputs[i]) : std::nullopt);
    spec.operands.push_back(OperandOf(layout, *cores, i, arrays[i]));
  }
  std::vector<int> zeroed;
  for (size_t j = 0; j + layout.num_inputs < layout.operands.size(); ++j) {
    const size_t number = layout.num_inputs + j;
    Shape shape = cores->loop;
    for (int dimension : layout.operands[number]) {
      if (!cores->missing[dimension]) shape.push_back(cores->sizes[dimension]);
    }
    const Input target = j < existing.size() ? existing[j] : Input();
    auto output =
        ChooseOutput((*loop)->outputs[j], shape, target, absl::StrCat("outputs[", j, "]"));
    if (!output.ok()) return output.status();
    copies |= output->dtype != (*loop)->outputs[j];
    if (!target) zeroed.push_back(static_cast<int>(j));
    spec.operands.push_back(OperandOf(layout, *cores, number, *output));
    spec.outputs.push_back(*output);
  }
  spec.routine = wire::RoutineCode::ROUTINE_GUFUNC;
  spec.extents = cores->loop;
  spec.num_inputs = static_cast<int>(arrays.size());
  spec.options = {spec.num_inputs};
  spec.label = own->id;
  Plan plan = MakeRoutinePlan(std::move(spec));
  *plan.code->mutable_routine()->mutable_function() = own->body.device_function;
  plan.zeroed_outputs = std::move(zeroed);
  if (converts) plan.converted_inputs = std::move(conversions);
  plan.through_new_output = copies;
  return plan;
}

}  // namespace stride::ops
