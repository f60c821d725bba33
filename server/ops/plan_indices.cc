#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/binary_function.h"
#include "server/ops/elementwise.h"
#include "server/ops/operation_kind.h"
#include "server/ops/routine_plan.h"

// Gather and Scatter: one loop over the elements that are moved, in which the indexed array has a
// stride of 0 along the axes of the indices and is led along axes of its own by them.
namespace stride::ops {
namespace {

// Assigned by one operation. Views that repeat an element make any number of indices without
// memory of their own; the device has a table as long as they are.
constexpr int64_t kMaxAssigned = int64_t{1} << 36;

// The common part of both messages.
struct Indexing {
  std::string name;  // the message's
  std::vector<ArrayInfo> indices;
  size_t axis = 0;
  bool along = false;
  int64_t mode = 0;

  size_t end() const { return axis + indices.size(); }
  std::string Field(const char* field) const { return absl::StrCat(name, ".", field); }
};

template <typename Message>
absl::StatusOr<Indexing> ReadIndexing(const Message& message, std::string name, Inputs indices,
                                      const ArrayInfo& indexed) {
  Indexing indexing;
  indexing.name = std::move(name);
  indexing.along = message.along_axis();
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::string field = absl::StrCat(indexing.Field("indices"), "[", i, "]");
    auto array = NeedArray(indices[i], field);
    if (!array.ok()) return array.status();
    if (!IsInteger(array->dtype)) {
      return InvalidField(
          v1::ERROR_REASON_DATA_TYPE_MISMATCH, field,
          absl::StrCat("indices are integers, not ", std::string(Name(array->dtype)),
                       IsBool(array->dtype) ? "; for a mask there is Compress" : ""));
    }
    indexing.indices.push_back(*std::move(array));
  }
  auto axis = NormalizeAxis(message.axis(), indexed.shape.size(), indexing.Field("axis"));
  if (!axis.ok()) return axis.status();
  indexing.axis = *axis;
  const size_t most = indexing.along ? 1 : indexed.shape.size() - *axis;
  if (indices.empty() || indices.size() > most) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, indexing.Field("indices"),
                        absl::StrCat("there is one index array for each axis from `axis` on, at "
                                     "least one. At most: ",
                                     most, ", given: ", indices.size()));
  }
  indexing.mode =
      message.mode() == v1::INDEX_MODE_UNSPECIFIED ? v1::INDEX_MODE_RAISE : message.mode();
  if (!v1::IndexMode_IsValid(static_cast<int>(indexing.mode))) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, indexing.Field("mode"),
                        absl::StrCat("no mode has this number: ", indexing.mode));
  }
  return indexing;
}

absl::StatusOr<Shape> AlongShape(const Indexing& indexing, const ArrayInfo& indexed) {
  Shape from = indexed.shape, index = indexing.indices[0].shape;
  if (index.size() != from.size()) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, indexing.Field("indices[0]"),
                        absl::StrCat("along an axis the indices have as many axes as the array: ",
                                     from.size(), ", not ", index.size()));
  }
  from[indexing.axis] = 1;
  const int64_t along = std::exchange(index[indexing.axis], 1);
  auto shape = BroadcastShapes({from, index}, indexing.Field("indices[0]"));
  if (shape.ok()) (*shape)[indexing.axis] = along;
  return shape;
}

// The shape of what is gathered or assigned.
absl::StatusOr<Shape> LoopShape(const Indexing& indexing, const ArrayInfo& indexed) {
  if (indexing.along) return AlongShape(indexing, indexed);
  std::vector<Shape> shapes;
  for (const ArrayInfo& index : indexing.indices) shapes.push_back(index.shape);
  auto common = BroadcastShapes(shapes, indexing.Field("indices"));
  if (!common.ok()) return common.status();
  Shape shape(indexed.shape.begin(), indexed.shape.begin() + indexing.axis);
  shape.insert(shape.end(), common->begin(), common->end());
  shape.insert(shape.end(), indexed.shape.begin() + indexing.end(), indexed.shape.end());
  return shape;
}

RoutineOperand IndexedOperand(const Indexing& indexing, const ArrayInfo& indexed, uint32_t slot,
                              const Shape& loop) {
  RoutineOperand operand{.slot = slot, .array = indexed};
  for (size_t axis = indexing.axis; axis < indexing.end(); ++axis) operand.AddOwn(axis);
  if (indexing.along) {
    // Other axes of length one repeat.
    ArrayInfo seen = indexed;
    seen.shape[indexing.axis] = 1;
    operand.strides = BroadcastStrides(seen, loop);
    operand.strides[indexing.axis] = 0;
    return operand;
  }
  const size_t after = indexed.shape.size() - indexing.end();
  operand.strides.assign(loop.size(), 0);
  for (size_t i = 0; i < indexing.axis; ++i) operand.strides[i] = indexed.strides[i];
  for (size_t i = 0; i < after; ++i)
    operand.strides[loop.size() - 1 - i] = indexed.strides[indexed.strides.size() - 1 - i];
  return operand;
}

RoutineOperand IndexOperand(const Indexing& indexing, size_t number, uint32_t slot,
                            const ArrayInfo& indexed, const Shape& loop) {
  const ArrayInfo& index = indexing.indices[number];
  RoutineOperand operand{.slot = slot, .array = index};
  if (indexing.along) {
    operand.strides = BroadcastStrides(index, loop);
    return operand;
  }
  const size_t after = indexed.shape.size() - indexing.end();
  const Shape middle(loop.begin() + indexing.axis, loop.end() - after);
  operand.strides.assign(loop.size(), 0);
  const std::vector<int64_t> strides = BroadcastStrides(index, middle);
  std::copy(strides.begin(), strides.end(), operand.strides.begin() + indexing.axis);
  return operand;
}

RoutineSpec IndexedSpec(const Indexing& indexing, const ArrayInfo& indexed, const Shape& loop,
                        wire::RoutineCode::Routine routine, RoutineOperand first,
                        uint32_t first_index, RoutineOperand last) {
  RoutineSpec spec;
  spec.routine = routine;
  spec.extents = loop;
  spec.operands.push_back(std::move(first));
  for (size_t i = 0; i < indexing.indices.size(); ++i)
    spec.operands.push_back(
        IndexOperand(indexing, i, first_index + static_cast<uint32_t>(i), indexed, loop));
  spec.operands.push_back(std::move(last));
  spec.num_inputs = static_cast<int>(spec.operands.size()) - 1;
  spec.options = {indexing.mode, indexing.along};
  spec.outputs = {spec.operands.back().array};
  return spec;
}

// The targets of Scatter and ApplyAt; the routine and its programs are the caller's.
// Without `values`, the first index array stands in their place, and nothing reads it there.
// `num_values`: of the inputs in front of the indices.
absl::StatusOr<RoutineSpec> AssignedSpec(const v1::Scatter& scatter, const std::string& name,
                                         const Input& given, Inputs inputs, uint32_t num_values,
                                         const ArrayInfo& output,
                                         wire::RoutineCode::Routine routine) {
  auto indexing = ReadIndexing(scatter, name, inputs.subspan(num_values), output);
  if (!indexing.ok()) return indexing.status();
  const std::string indices_field = indexing->Field("indices"),
                    values_field = indexing->Field("values");
  auto shape = LoopShape(*indexing, output);
  if (!shape.ok()) return shape.status();
  if (auto s = CheckShape(*shape, output.dtype, indices_field); !s.ok()) return s;
  if (Loop{*shape, {}}.count() > kMaxAssigned) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, indices_field,
                        absl::StrCat("too many elements are assigned at once. Limit: ",
                                     kMaxAssigned, ", elements: ", ToString(*shape)));
  }
  const Shape values = given ? given->shape : Shape();
  auto common = BroadcastShapes({*shape, values}, values_field);
  if (!common.ok()) return common.status();
  if (indexing->along && !std::equal(shape->begin(), shape->end(), output.shape.begin(),
                                     [&, i = size_t{0}](int64_t a, int64_t b) mutable {
                                       return i++ == indexing->axis || a == b;
                                     })) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, absl::StrCat(indices_field, "[0]"),
                        "along an axis the indices fit the array's other axes");
  }
  if (*common != *shape) {
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, values_field,
                        absl::StrCat("the values do not fit the elements that the indices name: ",
                                     ToString(values), " for ", ToString(*shape)));
  }
  RoutineOperand from = IndexOperand(*indexing, 0, num_values, output, *shape);
  if (given) from = {.slot = 0, .array = *given, .strides = BroadcastStrides(*given, *shape)};
  RoutineOperand to =
      IndexedOperand(*indexing, output, static_cast<uint32_t>(inputs.size()), *shape);
  RoutineSpec spec =
      IndexedSpec(*indexing, output, *shape, routine, std::move(from), num_values, std::move(to));
  // The order of the loop decides which of equal indices comes first.
  spec.order = AxisOrder::kKeep;
  return spec;
}

absl::Status NeedsExisting(const Input& existing) {
  if (existing) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "outputs[0].existing",
                      "elements are written in place; the output is an existing array");
}

absl::StatusOr<Plan> PlanGather(const v1::Gather& gather, Inputs inputs, const Input& existing) {
  auto input = NeedArray(inputs[0], "gather.input");
  if (!input.ok()) return input.status();
  auto indexing = ReadIndexing(gather, "gather", inputs.subspan(1), *input);
  if (!indexing.ok()) return indexing.status();
  auto shape = LoopShape(*indexing, *input);
  if (!shape.ok()) return shape.status();
  auto output = ChooseOutput(input->dtype, *shape, existing);
  if (!output.ok()) return output.status();
  RoutineOperand to{
      .slot = static_cast<uint32_t>(inputs.size()), .array = *output, .strides = output->strides};
  return MakeRoutinePlan(IndexedSpec(*indexing, *input, *shape, wire::RoutineCode::ROUTINE_GATHER,
                                     IndexedOperand(*indexing, *input, 0, *shape), 1,
                                     std::move(to)));
}

absl::StatusOr<Plan> PlanScatter(const v1::Scatter& scatter, Inputs inputs, const Input& existing) {
  if (auto s = NeedsExisting(existing); !s.ok()) return s;
  auto values = NeedArray(inputs[0], "scatter.values");
  if (!values.ok()) return values.status();
  auto casting = ReadCasting(scatter.casting(), "scatter.casting", Casting::kUnsafe);
  if (!casting.ok()) return casting.status();
  auto output = ChooseOutput(values->dtype, existing->shape, existing, "outputs[0]", *casting);
  if (!output.ok()) return output.status();
  auto spec = AssignedSpec(scatter, "scatter", inputs[0], inputs, 1, *output,
                           wire::RoutineCode::ROUTINE_SCATTER);
  if (!spec.ok()) return spec.status();
  return MakeRoutinePlan(*std::move(spec));
}

// How the routine takes its values: option 2.
enum { kAtArray = 0, kAtNumber = 1, kAtUnary = 2 };

// Option 3: whether exact sums may take the place of the function, one after another.
enum { kAtInOrder = 0, kAtAdds = 1, kAtSubtracts = 2 };

int SumsOf(const v1::ApplyAt& operation, DType accumulator, DType output) {
  const bool exact = accumulator == output &&
                     (IsInteger(output) || output == DType::kFloat32 || output == DType::kFloat64);
  if (!exact) return kAtInOrder;
  return operation.function() == "add"        ? kAtAdds
         : operation.function() == "subtract" ? kAtSubtracts
                                              : kAtInOrder;
}

absl::StatusOr<RoutineSpec> AtSpec(const v1::ApplyAt& operation, const Input& values, Inputs inputs,
                                   const ArrayInfo& output, int form, int sums = kAtInOrder) {
  v1::Scatter indexing;
  indexing.set_axis(operation.axis());
  indexing.set_mode(operation.mode());
  auto spec = AssignedSpec(indexing, "apply_at", values, inputs, operation.has_values() ? 1 : 0,
                           output, wire::RoutineCode::ROUTINE_APPLY_AT);
  if (!spec.ok()) return spec.status();
  spec->options.push_back(form);
  spec->options.push_back(sums);
  return spec;
}

// A function of the elements alone: `np.negative.at(x, i)`.
absl::StatusOr<Plan> PlanUnaryAt(const v1::ApplyAt& operation, Inputs inputs,
                                 const ArrayInfo& existing, const FunctionTable* functions) {
  constexpr char kFunction[] = "apply_at.function";
  const OpRow* row = FindOp(operation.function());
  const ClientFunction* own =
      row == nullptr && functions != nullptr ? functions->Find(operation.function()) : nullptr;
  if (row == nullptr && own == nullptr && FindTwoOutputUfunc(operation.function()) == nullptr) {
    return InvalidField(v1::ERROR_REASON_UNKNOWN_FUNCTION, kFunction,
                        absl::StrCat("no such function: ", operation.function()),
                        {{"function", operation.function()}});
  }
  const bool unary = row != nullptr ? row->arity == 1
                                    : own != nullptr && own->num_inputs == 1 &&
                                          own->kind == ClientFunction::Kind::kUfunc;
  if (!unary) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kFunction,
                        absl::StrCat("without `values` only a function of one input and one result "
                                     "can be used here: ",
                                     operation.function()));
  }
  ProgramBuilder apply;
  apply.MakeConstantsLiteral();
  const Value element = apply.Input(0, existing.dtype);
  auto result = row != nullptr
                    ? Apply(apply, *row, {Argument(element)}, std::nullopt, kFunction)
                    : ApplyFunction(apply, *own, {Argument(element)}, std::nullopt, kFunction);
  if (!result.ok()) return result.status();
  auto output = ChooseOutput(result->dtype, existing.shape, existing);
  if (!output.ok()) return output.status();
  auto spec = AtSpec(operation, Input(), inputs, *output, kAtUnary);
  if (!spec.ok()) return spec.status();
  // The whole function is the one program of the element.
  const auto index = static_cast<DType>(spec->operands[0].array.dtype);
  spec->programs = {CastProgram({index}), CastProgram({existing.dtype}),
                    MakeProgram(apply, apply.Cast(*result, existing.dtype)),
                    CastProgram({existing.dtype})};
  return MakeRoutinePlan(*std::move(spec));
}

absl::StatusOr<Plan> PlanApplyAt(const v1::ApplyAt& operation, Inputs inputs, const Input& existing,
                                 const FunctionTable* functions) {
  if (auto s = NeedsExisting(existing); !s.ok()) return s;
  if (!operation.has_values()) return PlanUnaryAt(operation, inputs, *existing, functions);
  const Input& values = inputs[0];
  std::optional<ScalarOperand> number;
  DType type = existing->dtype;
  if (values) {
    type = PromoteTypes(type, values->dtype);
  } else {
    auto read = ReadScalar(operation.values().scalar(), "apply_at.values");
    if (!read.ok()) return read.status();
    number = *read;
    type = ResultType({ArgumentType(type),
                       number->dtype ? ArgumentType(*number->dtype) : ArgumentType(number->value)});
  }
  auto function = FindBinaryFunction({.name = operation.function(),
                                      .input = type,
                                      .keeps_type = true,
                                      .field = "apply_at.function",
                                      .input_field = "apply_at.values"},
                                     functions);
  if (!function.ok()) return function.status();
  auto output = ChooseOutput(function->dtype, existing->shape, existing);
  if (!output.ok()) return output.status();
  auto spec = AtSpec(operation, values, inputs, *output, values ? kAtArray : kAtNumber,
                     SumsOf(operation, function->accumulator, output->dtype));
  if (!spec.ok()) return spec.status();
  const DType dtype = function->dtype, accumulator = function->accumulator;
  if (number) {
    // As an element of the function's type, 16-bit floats among them.
    auto encoded = EncodeScalar(number->value, dtype, "apply_at.values");
    if (!encoded.ok()) return encoded.status();
    spec->scalars.push_back(*encoded);
  }
  spec->programs = {CastProgram({values ? values->dtype : dtype, dtype, accumulator}),
                    CastProgram({output->dtype, dtype, accumulator}), CombineCode(*function),
                    CastProgram({accumulator, dtype, output->dtype})};
  return MakeRoutinePlan(*std::move(spec));
}

template <typename Message>
bool HasBatchedIndex(const Batcher& batcher, const Message& message) {
  return std::any_of(message.indices().begin(), message.indices().end(),
                     [&](const v1::Operand& index) { return batcher.IsBatched(index); });
}

// Indices in one rank, which is returned.
template <typename Message>
absl::StatusOr<size_t> AlignIndices(Batcher& batcher, Message* message) {
  size_t rank = 0;
  for (const v1::Operand& index : message->indices())
    rank = std::max(rank, batcher.Find(index)->rank());
  for (auto& index : *message->mutable_indices()) {
    auto aligned = batcher.WithRank(*batcher.Find(index), rank);
    if (!aligned.ok()) return aligned.status();
    batcher.Replace(&index, *aligned);
  }
  return rank;
}

// In front of the indices the number of the batch's element.
template <typename Message>
absl::Status AddNumbers(Batcher& batcher, Message* message, size_t rank) {
  auto numbers = batcher.Numbers(rank);
  if (!numbers.ok()) return numbers.status();
  // Operands move: those that were replaced are found again by their handles.
  Message before = *message;
  message->clear_indices();
  batcher.Replace(message->add_indices(), *numbers);
  for (const v1::Operand& index : before.indices()) *message->add_indices() = index;
  batcher.AllReplaced(message->mutable_indices());
  return absl::OkStatus();
}

// An operand without the batch's axis gets one of length one, which broadcasts.
absl::Status AddBatchAxis(Batcher& batcher, v1::Operand* operand) {
  const Batched array = *batcher.Find(*operand);
  if (array.batched) return absl::OkStatus();
  Shape shape = array.info.shape;
  shape.insert(shape.begin(), 1);
  auto reshaped = batcher.Reshaped(array, shape);
  if (!reshaped.ok()) return reshaped.status();
  batcher.Replace(operand, *reshaped);
  return absl::OkStatus();
}

absl::Status BatchGatherAlong(Batcher& batcher, v1::Gather* gather, size_t axis) {
  for (v1::Operand* operand : {gather->mutable_input(), gather->mutable_indices(0)}) {
    if (absl::Status status = AddBatchAxis(batcher, operand); !status.ok()) return status;
  }
  gather->set_axis(static_cast<int32_t>(axis + 1));
  return absl::OkStatus();
}

absl::Status BatchGather(Batcher& batcher, v1::Operation* operation) {
  auto* gather = operation->mutable_gather();
  const Batched input = *batcher.Find(gather->input());
  auto axis = NormalizeAxis(gather->axis(), input.rank(), "gather.axis");
  if (!axis.ok()) return axis.status();
  if (gather->along_axis()) return BatchGatherAlong(batcher, gather, *axis);
  if (!HasBatchedIndex(batcher, *gather)) {
    gather->set_axis(static_cast<int32_t>(*axis + 1));
    return absl::OkStatus();
  }
  // The batch's axis goes where the first of the indexed axes is, and comes back in the result.
  auto rank = AlignIndices(batcher, gather);
  if (!rank.ok()) return rank.status();
  if (input.batched) {
    auto moved = batcher.Moved(input, 0, *axis);
    if (!moved.ok()) return moved.status();
    if (absl::Status status = AddNumbers(batcher, gather, *rank); !status.ok()) return status;
    batcher.Replace(gather->mutable_input(), *moved);
  }
  gather->set_axis(static_cast<int32_t>(*axis));
  if (*axis == 0) return absl::OkStatus();
  if (operation->outputs(0).existing()) return batcher.NoRule(*operation);
  const uint64_t handle = operation->outputs(0).handle();
  operation->mutable_outputs(0)->set_handle(batcher.NewHandle());
  const uint64_t made = operation->outputs(0).handle();
  if (absl::Status status = batcher.Finish(*operation, true); !status.ok()) return status;
  auto moved = batcher.Moved(batcher.At(made), *axis, 0);
  if (!moved.ok()) return moved.status();
  batcher.SetResult(handle, *std::move(moved));
  operation->clear_kind();
  return absl::OkStatus();
}

absl::Status BatchScatterAlong(Batcher& batcher, v1::Operation* operation) {
  auto* scatter = operation->mutable_scatter();
  const size_t rank = batcher.At(operation->outputs(0).handle()).rank();
  absl::Status status = batcher.SetShifted(scatter, scatter->axis(), rank, "scatter.axis");
  if (status.ok()) status = AddBatchAxis(batcher, scatter->mutable_indices(0));
  if (!status.ok()) return status;
  auto values = batcher.WithRank(*batcher.Find(scatter->values()), rank);
  if (!values.ok()) return values.status();
  batcher.Replace(scatter->mutable_values(), *values);
  return absl::OkStatus();
}

// Scatter and ApplyAt, into a target of the batch.
template <typename Message>
absl::Status BatchAssignment(Batcher& batcher, v1::Operation* operation, Message* message) {
  const Batched target = batcher.At(operation->outputs(0).handle());
  auto axis = NormalizeAxis(message->axis(), target.rank(), "axis");
  if (!axis.ok()) return axis.status();
  for (const v1::Operand& index : message->indices()) {
    if (batcher.Find(index) == nullptr) return batcher.NoRule(*operation);
  }
  const auto count = static_cast<size_t>(message->indices_size());
  if (target.rank() < *axis + count) return batcher.NoRule(*operation);
  const bool own_indices = HasBatchedIndex(batcher, *message);
  auto rank = AlignIndices(batcher, message);
  if (!rank.ok()) return rank.status();
  const size_t result_rank = target.rank() - count + *rank;
  const bool has_values = message->has_values() && batcher.Find(message->values()) != nullptr;
  std::optional<Batched> values;
  if (has_values) {
    auto aligned = batcher.WithRank(*batcher.Find(message->values()), result_rank);
    if (!aligned.ok()) return aligned.status();
    values = *aligned;
  }
  if (!own_indices) {
    message->set_axis(static_cast<int32_t>(*axis + 1));
  } else {
    auto moved = batcher.Moved(target, 0, *axis);
    if (!moved.ok()) return moved.status();
    batcher.SetTarget(0, *moved);
    if (absl::Status status = AddNumbers(batcher, message, *rank); !status.ok()) return status;
    message->set_axis(static_cast<int32_t>(*axis));
    if (values && values->batched) {
      auto placed = batcher.Moved(*values, 0, *axis);
      if (!placed.ok()) return placed.status();
      values = *placed;
    } else if (values && values->rank() > result_rank - *axis) {
      // Its axes before those of the indices stay before the batch's.
      Shape shape = values->info.shape;
      shape.insert(shape.end() - static_cast<int64_t>(result_rank - *axis), 1);
      auto placed = batcher.Reshaped(*values, shape);
      if (!placed.ok()) return placed.status();
      values = *placed;
    }
  }
  if (values) batcher.Replace(message->mutable_values(), *values);
  return absl::OkStatus();
}

absl::Status BatchScatter(Batcher& batcher, v1::Operation* o) {
  return o->scatter().along_axis() ? BatchScatterAlong(batcher, o)
                                   : BatchAssignment(batcher, o, o->mutable_scatter());
}

absl::Status BatchApplyAt(Batcher& batcher, v1::Operation* o) {
  return BatchAssignment(batcher, o, o->mutable_apply_at());
}

}  // namespace

const OperationKind kGatherKind = {
    .name = "gather",
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          list.Add(o.gather().input());
          list.AddEach(o.gather().indices());
        },
    .plan = PlanBy<&v1::Operation::gather, PlanGather>,
    .rules = {OneResult, WholeKey, BatchGather, Undivided},
    .lists = Bounded<&v1::Operation::gather, kMaxListedAxes, &v1::Gather::indices_size>,
};

const OperationKind kScatterKind = {
    .name = "scatter",
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          list.Add(o.scatter().values());
          list.AddEach(o.scatter().indices());
        },
    .plan = PlanBy<&v1::Operation::scatter, PlanScatter>,
    .rules = {OneResult, WholeKey, BatchScatter, Undivided},
    .lists = Bounded<&v1::Operation::scatter, kMaxListedAxes, &v1::Scatter::indices_size>,
    .keeps_output = [](const v1::Operation&) { return true; },
};

const OperationKind kApplyAtKind = {
    .name = "apply_at",
    .detail = [](const v1::Operation& o) -> std::string {
      return absl::StrCat(o.apply_at().function().substr(0, 80), " at");
    },
    .operands =
        [](const v1::Operation& o, OperandList& list) {
          if (o.apply_at().has_values()) list.Add(o.apply_at().values());
          list.AddEach(o.apply_at().indices());
        },
    .plan = PlanBy<&v1::Operation::apply_at, PlanApplyAt>,
    .rules = {OneResult, WholeKey, BatchApplyAt, Undivided},
    .lists = Bounded<&v1::Operation::apply_at, kMaxListedAxes, &v1::ApplyAt::indices_size>,
    .batches_numbers = true,
    .keeps_output = [](const v1::Operation&) { return true; },
};

}  // namespace stride::ops
