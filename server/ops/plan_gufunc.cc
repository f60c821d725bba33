#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/elementwise.h"
#include "server/ops/gufunc_cores.h"
#include "server/ops/op_table.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

constexpr char kInputs[] = "gufunc.inputs";

std::string FieldOf(size_t i) { return absl::StrCat(kInputs, "[", i, "]"); }

const ClientFunction* FindGufunc(const v1::Gufunc& gufunc, const FunctionTable* functions) {
  return functions == nullptr ? nullptr : functions->Find(gufunc.function());
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

int NumGufuncResults(const v1::Gufunc& gufunc, const FunctionTable* functions) {
  const ClientFunction* own = FindGufunc(gufunc, functions);
  if (own == nullptr || own->kind != ClientFunction::Kind::kGufunc) return 1;
  return static_cast<int>(own->layout.operands.size() - own->layout.num_inputs);
}

// A client's, of the last axes.
absl::StatusOr<Plan> PlanOwn(const v1::Gufunc& gufunc, const ClientFunction& own, Inputs inputs,
                             absl::Span<const Input> existing) {
  auto data_type = ReadDataType(gufunc.data_type(), "gufunc.data_type");
  if (!data_type.ok()) return data_type.status();
  std::vector<std::optional<WeakScalar>> numbers(inputs.size());
  std::vector<ArgumentType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) {
      types.emplace_back(inputs[i]->dtype);
      continue;
    }
    auto number = ReadScalar(gufunc.inputs(static_cast<int>(i)).scalar(), FieldOf(i));
    if (!number.ok()) return number.status();
    numbers[i] = number->value;
    types.push_back(number->dtype ? ArgumentType(*number->dtype) : ArgumentType(number->value));
  }
  auto loop = ChooseLoop(own, types, *data_type, kInputs, Casting::kSameKind);
  if (!loop.ok()) return loop.status();
  const CoreLayout& layout = own.layout;
  auto cores = ReadCores(layout, inputs);
  if (!cores.ok()) return cores.status();

  RoutineSpec spec;
  spec.options = {static_cast<int64_t>(inputs.size())};
  bool converts = false, copies = false;
  std::vector<std::optional<DType>> conversions;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = (*loop)->inputs[i];
    const bool other = inputs[i] && inputs[i]->dtype != dtype;
    converts |= other;
    conversions.push_back(other ? std::optional<DType>(dtype) : std::nullopt);
    if (inputs[i]) {
      spec.options.push_back(0);
      spec.operands.push_back(OperandOf(layout, *cores, i, *inputs[i]));
      continue;
    }
    auto number = EncodeScalar(*numbers[i], dtype, FieldOf(i));
    if (!number.ok()) return number.status();
    spec.scalars.push_back(*number);
    spec.options.push_back(GufuncNumberOption(dtype, layout.operands[i].size()));
  }
  spec.num_inputs = static_cast<int>(spec.operands.size());
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
  Plan plan = MakeRoutinePlan(std::move(spec));
  *plan.code->mutable_routine()->mutable_function() = own.body.device_function;
  plan.zeroed_outputs = std::move(zeroed);
  if (converts) plan.converted_inputs = std::move(conversions);
  plan.through_new_output = copies;
  return plan;
}

absl::StatusOr<Plan> PlanLastAxes(const v1::Gufunc& gufunc, const ClientFunction* own,
                                  Inputs inputs, absl::Span<const Input> existing) {
  if (own != nullptr) return PlanOwn(gufunc, *own, inputs, existing);
  return PlanBuiltInGufunc(gufunc, inputs, existing.empty() ? Input() : existing[0]);
}

// The output as it is to be, whose view with the core's axes last is what the plan writes.
absl::StatusOr<ArrayInfo> PlacedOutput(const ArrayInfo& made, const std::vector<size_t>& axes,
                                       bool keeps, const Input& existing, std::string_view field) {
  Shape shape = made.shape;
  if (keeps) shape.push_back(1);
  shape = FromLastAxes(shape, axes);
  if (auto s = CheckShape(shape, made.dtype, field); !s.ok()) return s;
  if (!existing) return Contiguous(made.dtype, shape);
  return ChooseOutput(made.dtype, shape, existing, field);
}

// Axes in other places are planned twice: to know the results' shapes, and then for views.
absl::StatusOr<Plan> PlanPlaced(const v1::Gufunc& gufunc, const ClientFunction* own,
                                const CoreLayout& layout, Inputs inputs,
                                absl::Span<const Input> existing) {
  auto ranks = ReadCoreRanks(layout, inputs);
  if (!ranks.ok()) return ranks.status();
  auto places = ReadCorePlaces(gufunc, layout, *ranks, inputs);
  if (!places.ok()) return places.status();
  v1::Gufunc plain = gufunc;
  plain.clear_axes();
  plain.clear_axis();
  plain.clear_keep_dims();
  std::vector<Input> views(inputs.begin(), inputs.end());
  for (size_t i = 0; i < views.size(); ++i) {
    if (views[i]) views[i] = WithLastAxes(*views[i], places->axes[i]);
  }
  auto first = PlanLastAxes(plain, own, views, {});
  if (!first.ok()) return first.status();
  std::vector<ArrayInfo> outputs;
  std::vector<Input> targets;
  std::vector<int> zeroed;
  for (size_t j = 0; j < first->outputs.size(); ++j) {
    const Input target = j < existing.size() ? existing[j] : Input();
    const std::vector<size_t>& axes = places->axes[layout.num_inputs + j];
    auto output = PlacedOutput(first->outputs[j], axes, places->keeps, target,
                               absl::StrCat("outputs[", j, "]"));
    if (!output.ok()) return output.status();
    ArrayInfo view = WithLastAxes(*output, axes);
    if (places->keeps) {
      view.shape.pop_back();
      view.strides.pop_back();
    }
    outputs.push_back(*output);
    targets.emplace_back(std::move(view));
    if (!target && own != nullptr) zeroed.push_back(static_cast<int>(j));
  }
  auto plan = PlanLastAxes(plain, own, views, targets);
  if (plan.ok() && plan->through_new_output && own == nullptr &&
      (existing.empty() || !existing[0]) && plan->converted_inputs.empty())
    plan = PlanBuiltInStrided(plain, views, targets[0]);
  if (!plan.ok()) return plan.status();
  plan->outputs = std::move(outputs);
  plan->zeroed_outputs = std::move(zeroed);
  return plan;
}

absl::StatusOr<Plan> PlanGufunc(const v1::Gufunc& gufunc, Inputs inputs,
                                absl::Span<const Input> existing, const FunctionTable* functions) {
  const bool built_in = IsBuiltInGufunc(gufunc.function());
  const ClientFunction* own = built_in ? nullptr : FindGufunc(gufunc, functions);
  if (!built_in && (own == nullptr || own->kind != ClientFunction::Kind::kGufunc))
    return UnknownFunction(gufunc.function(),
                           own != nullptr || FindOp(gufunc.function()) != nullptr);
  if (gufunc.axes().empty() && !gufunc.has_axis() && !gufunc.keep_dims())
    return PlanLastAxes(gufunc, own, inputs, existing);
  if (own != nullptr && inputs.size() == own->num_inputs)
    return PlanPlaced(gufunc, own, own->layout, inputs, existing);
  if (own != nullptr || inputs.size() != 2) return PlanLastAxes(gufunc, own, inputs, existing);
  auto layout = ParseLayout(LayoutOf(gufunc.function()), "gufunc.function");
  if (!layout.ok()) return layout.status();
  return PlanPlaced(gufunc, own, *layout, inputs, existing);
}

// Dimensions that one element's operand lacks as axes of length one.
absl::StatusOr<Batched> WithMissing(Batcher& batcher, const Batched& array,
                                    const CoreLayout& layout, const Cores& cores, size_t number) {
  Shape shape = array.info.shape;
  size_t place = shape.size() - cores.ranks[number];
  for (int dimension : layout.operands[number]) {
    if (cores.missing[dimension]) shape.insert(shape.begin() + static_cast<int64_t>(place), 1);
    ++place;
  }
  return batcher.Reshaped(array, shape);
}

// The results without them.
absl::Status WithoutMissing(Batcher& batcher, v1::Operation* operation, const CoreLayout& layout,
                            const Cores& cores) {
  std::vector<Input> inputs;
  for (const auto& input : operation->gufunc().inputs())
    inputs.emplace_back(batcher.Replaced(input));
  auto plan = PlanOperation(*operation, inputs,
                            std::vector<Input>(static_cast<size_t>(operation->outputs_size())),
                            batcher.functions());
  if (!plan.ok()) return plan.status();
  std::vector<Shape> shapes;
  for (int j = 0; j < operation->outputs_size(); ++j) {
    if (operation->outputs(j).existing()) return batcher.NoRule(*operation);
    const auto& dimensions = layout.operands[layout.num_inputs + static_cast<size_t>(j)];
    Shape shape = plan->outputs[static_cast<size_t>(j)].shape;
    const size_t first = shape.size() - dimensions.size();
    for (size_t d = dimensions.size(); d-- > 0;) {
      if (cores.missing[dimensions[d]])
        shape.erase(shape.begin() + static_cast<int64_t>(first + d));
    }
    shapes.push_back(std::move(shape));
  }
  return batcher.FinishReshaped(operation, shapes);
}

absl::Status BatchGufunc(Batcher& batcher, v1::Operation* operation) {
  const v1::Gufunc& gufunc = operation->gufunc();
  const std::string& name = gufunc.function();
  const ClientFunction* own =
      batcher.functions() == nullptr ? nullptr : batcher.functions()->Find(name);
  absl::StatusOr<CoreLayout> layout = absl::NotFoundError("");
  if (IsBuiltInGufunc(name)) {
    layout = ParseLayout(LayoutOf(name), "gufunc.function");
  } else if (own != nullptr && own->kind == ClientFunction::Kind::kGufunc) {
    layout = own->layout;
  }
  const bool placed = !gufunc.axes().empty() || gufunc.has_axis() || gufunc.keep_dims();
  if (!layout.ok() || placed || layout->num_inputs != static_cast<size_t>(gufunc.inputs_size()))
    return batcher.NoRule(*operation);
  // The operands of one element.
  std::vector<Input> elements;
  for (const v1::Operand& operand : gufunc.inputs()) {
    elements.emplace_back(batcher.Find(operand)->element());
  }
  auto cores = ReadCoreRanks(*layout, elements);
  if (!cores.ok()) return cores.status();
  size_t loop = 0;
  for (size_t i = 0; i < elements.size(); ++i)
    loop = std::max(loop, elements[i]->shape.size() - cores->ranks[i]);
  for (size_t i = 0; i < elements.size(); ++i) {
    v1::Operand* operand = operation->mutable_gufunc()->mutable_inputs(static_cast<int>(i));
    auto whole = WithMissing(batcher, *batcher.Find(*operand), *layout, *cores, i);
    if (!whole.ok()) return whole.status();
    auto aligned = batcher.WithRank(*whole, loop + layout->operands[i].size());
    if (!aligned.ok()) return aligned.status();
    batcher.Replace(operand, *aligned);
  }
  const bool lacks = std::count(cores->missing.begin(), cores->missing.end(), true) > 0;
  return lacks ? WithoutMissing(batcher, operation, *layout, *cores) : absl::OkStatus();
}

int GufuncResults(const v1::Operation& o, Inputs, const FunctionTable* functions) {
  return NumGufuncResults(o.gufunc(), functions);
}

}  // namespace

const OperationKind kGufuncKind = {
    .name = "gufunc",
    .detail = [](const v1::Operation& o) -> std::string { return o.gufunc().function(); },
    .operands = [](const v1::Operation& o,
                   OperandList& list) { list.AddEach(o.gufunc().inputs()); },
    .plan = PlanBy<&v1::Operation::gufunc, PlanGufunc>,
    .rules = {GufuncResults, NoKey, BatchGufunc, Undivided},
    .lists = Bounded<&v1::Operation::gufunc, kMaxListedAxes, &v1::Gufunc::inputs_size,
                     &v1::Gufunc::axes_size>,
};

}  // namespace stride::ops
