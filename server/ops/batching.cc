#include "server/ops/batching.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/operation_kind.h"
#include "server/ops/program_plan.h"
#include "server/ops/routine_plan.h"

namespace stride::ops {
namespace {

// The greatest handle of a program with a batch. The rules add fewer than 2^32 handles above it.
constexpr uint64_t kMaxHandle = UINT64_MAX - (uint64_t{1} << 32);

}  // namespace

Batcher::Batcher(const v1::Program& program, const FunctionTable* functions, const KindTable& kinds,
                 const std::set<uint64_t>& forced)
    : program_(program), functions_(functions), kinds_(kinds), forced_(forced) {}

absl::Status Batcher::ReserveHandles() {
  for (int i = 0; i < program_.inputs_size(); ++i) {
    const auto field = [&] { return absl::StrCat("inputs[", i, "].handle"); };
    absl::Status status = Reserve(program_.inputs(i).handle(), field);
    if (!status.ok()) return status;
  }
  for (int i = 0; i < program_.operations_size(); ++i) {
    const OperationView view(program_.operations(i), kinds_);
    for (size_t j = 0; j < view.outputs().size(); ++j) {
      const auto field = [&] { return absl::StrCat("operations[", i, "].", view.OutputPath(j)); };
      absl::Status status = Reserve(view.outputs()[j]->handle(), field);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Batcher::Reserve(uint64_t handle, absl::FunctionRef<std::string()> field) {
  if (handle > kMaxHandle) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field(),
                        absl::StrCat("a batched program needs free handles above its own. Handle: ",
                                     handle, ", limit: ", kMaxHandle));
  }
  next_handle_ = std::max(next_handle_, handle + 1);
  return absl::OkStatus();
}

absl::StatusOr<v1::Program> Batcher::Run(absl::Span<const ArrayInfo> inputs) {
  if (absl::Status status = ReserveHandles(); !status.ok()) return status;
  *result_.mutable_inputs() = program_.inputs();
  for (int i = 0; i < program_.inputs_size(); ++i) {
    absl::Status status = AddInput(i, inputs[i]);
    if (!status.ok()) return status;
  }
  if (!size_) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "batching.inputs",
                        "at least one input has the batch's axis");
  }
  for (int i = 0; i < program_.operations_size(); ++i) {
    absl::Status status = AddOperation(program_.operations(i));
    if (!status.ok()) return PrefixField(status, absl::StrCat("operations[", i, "]."));
  }
  for (int j = 0; j < program_.outputs_size(); ++j) {
    auto handle = OutputHandle(j);
    if (!handle.ok()) return handle.status();
    result_.add_outputs(*handle);
  }
  return std::move(result_);
}

absl::Status Batcher::AddInput(int number, const ArrayInfo& info) {
  const uint64_t handle = program_.inputs(number).handle();
  Batched input{handle, false, info};
  raw_[handle] = info;
  if (program_.batching().inputs(number).has_axis()) {
    const std::string field = absl::StrCat("batching.inputs[", number, "].axis");
    auto axis = NormalizeAxis(program_.batching().inputs(number).axis(), info.shape.size(), field);
    if (!axis.ok()) return axis.status();
    const int64_t extent = info.shape[*axis];
    if (size_.value_or(extent) != extent) {
      return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, field,
                          absl::StrCat("the batch has ", *size_, " elements, not ", extent));
    }
    size_ = extent;
    input.batched = true;
    auto moved = Moved(input, *axis, 0);
    if (!moved.ok()) return moved.status();
    input = *moved;
  }
  known_[handle] = input;
  return absl::OkStatus();
}

absl::StatusOr<Batched> Batcher::ViewOf(const Batched& array, const v1::View::Step& step) {
  v1::Operation operation;
  operation.mutable_view()->mutable_input()->set_handle(array.handle);
  *operation.mutable_view()->add_steps() = step;
  operation.add_outputs()->set_handle(next_handle_++);
  return Emit(std::move(operation), {array.info}, array.batched);
}

absl::StatusOr<Batched> Batcher::Moved(const Batched& array, size_t from, size_t to) {
  if (from == to) return array;
  std::vector<int32_t> axes(array.info.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + static_cast<int64_t>(from));
  axes.insert(axes.begin() + static_cast<int64_t>(to), static_cast<int32_t>(from));
  v1::View::Step step;
  step.mutable_transpose()->mutable_axes()->Assign(axes.begin(), axes.end());
  return ViewOf(array, step);
}

absl::StatusOr<Batched> Batcher::Reshaped(const Batched& array, const Shape& shape) {
  if (array.info.shape == shape) return array;
  v1::View::Step step;
  step.mutable_reshape()->mutable_shape()->Assign(shape.begin(), shape.end());
  return ViewOf(array, step);
}

absl::StatusOr<Batched> Batcher::WithRank(const Batched& array, size_t rank) {
  if (!array.batched || array.rank() >= rank) return array;
  Shape shape = array.info.shape;
  shape.insert(shape.begin() + 1, rank - array.rank(), 1);
  return Reshaped(array, shape);
}

absl::StatusOr<Batched> Batcher::Emit(v1::Operation operation, const std::vector<ArrayInfo>& arrays,
                                      bool batched) {
  std::vector<Input> inputs(arrays.begin(), arrays.end());
  auto plan =
      PlanOperation(OperationView(operation, kinds_), inputs, std::vector<Input>(1), functions_);
  if (!plan.ok()) return plan.status();
  Batched made{operation.outputs(0).handle(), batched, plan->outputs[0]};
  *result_.add_operations() = std::move(operation);
  return made;
}

const Batched* Batcher::Find(const v1::Operand& operand) const {
  return operand.source_case() == v1::Operand::kHandle ? &known_.at(operand.handle()) : nullptr;
}

bool Batcher::IsBatched(const v1::Operand& operand) const {
  const Batched* found = Find(operand);
  return found != nullptr && found->batched;
}

absl::Status Batcher::NoRule(const v1::Operation& operation) const {
  return NotImplemented(absl::StrCat("batching of ", kinds_.Of(operation).name),
                        absl::StrCat("this operation has no rule for a batch as it is used here: ",
                                     kinds_.Of(operation).name));
}

size_t Batcher::RankOf(v1::Operation* operation) const {
  size_t rank = 0;
  for (const v1::Operand* operand : OperandsOf(operation)) {
    if (const Batched* found = Find(*operand)) rank = std::max(rank, found->rank());
  }
  return rank;
}

absl::Status Batcher::Align(v1::Operation* operation) {
  return Align(operation, RankOf(operation));
}

absl::Status Batcher::Align(v1::Operation* operation, size_t rank) {
  for (v1::Operand* operand : OperandsOf(operation)) {
    const Batched* found = Find(*operand);
    if (found == nullptr) continue;
    auto aligned = WithRank(*found, rank);
    if (!aligned.ok()) return aligned.status();
    Replace(operand, *aligned);
  }
  return absl::OkStatus();
}

void Batcher::Replace(v1::Operand* operand, const Batched& array) {
  operand->set_handle(array.handle);
  raw_[array.handle] = array.info;
  if (array.batched) aligned_.insert(array.handle);
  replaced_.push_back(operand);
}

absl::Status Batcher::AddOperation(const v1::Operation& given) {
  v1::Operation operation = given;
  bool batched = false, into_batched = false;
  const OperationView view(given, kinds_);
  for (const v1::Operand* operand : view.operands()) batched = batched || IsBatched(*operand);
  for (const v1::Output* output : view.outputs()) {
    if (output->existing()) into_batched = into_batched || known_.at(output->handle()).batched;
  }
  if (batched) {
    if (absl::Status status = CheckTargets(given); !status.ok()) return status;
  }
  if (batched || into_batched) {
    if (absl::Status status = CheckElement(view); !status.ok()) return status;
  }
  if (given.has_view() && given.outputs_size() == 1) {
    const uint64_t input = given.view().input().handle(), output = given.outputs(0).handle();
    base_[output] = base_.count(input) > 0 ? base_.at(input) : input;
  }
  replaced_.clear();
  if (batched || into_batched) {
    absl::Status status = ApplyRule(&operation);
    if (!status.ok()) return status;
    if (operation.kind_case() == v1::Operation::KIND_NOT_SET) return absl::OkStatus();
  }
  return Finish(operation, batched || into_batched);
}

absl::Status Batcher::CheckTargets(const v1::Operation& given) {
  for (const v1::Output& output : given.outputs()) {
    if (!output.existing() || known_.at(output.handle()).batched) continue;
    const auto base = base_.find(output.handle());
    const uint64_t whole = base == base_.end() ? output.handle() : base->second;
    for (const auto& input : program_.inputs()) {
      if (input.handle() != whole) continue;
      return NotImplemented(
          absl::StrCat("batching of ", kinds_.Of(given).name, " in place"),
          "an array that all elements of the batch share cannot be written; make a new array");
    }
    must_force_ = whole;
    return absl::FailedPreconditionError("a target has to have the batch's axis");
  }
  return absl::OkStatus();
}

absl::Status Batcher::CheckElement(const OperationView& operation) {
  if (operation.kind().rules.batch == NoBatching) return NoRule(*operation);
  std::vector<Input> inputs, existing;
  for (const v1::Operand* operand : operation.operands()) {
    const Batched* found = Find(*operand);
    inputs.push_back(found == nullptr ? Input() : Input(found->element()));
  }
  for (const v1::Output* output : operation.outputs())
    existing.push_back(output->existing() ? Input(At(output->handle()).element()) : Input());
  return PlanOperation(operation, inputs, existing, functions_).status();
}

absl::StatusOr<std::vector<ArrayInfo>> Batcher::ResultsOf(const v1::Operation& operation,
                                                          absl::Span<const Input> inputs,
                                                          absl::Span<const Input> existing) const {
  if (operation.has_loop() || operation.has_branch()) {
    ProgramStep step;
    step.operation = operation;
    absl::Status status = PlanBodies(inputs, existing, functions_, &step);
    if (!status.ok()) return status;
    return std::move(step.results);
  }
  auto plan = PlanOperation(OperationView(operation, kinds_), inputs, existing, functions_);
  if (!plan.ok()) return plan.status();
  return std::vector<ArrayInfo>(plan->outputs.begin(), plan->outputs.end());
}

absl::Status Batcher::Finish(v1::Operation& operation, bool batched) {
  std::vector<Input> inputs;
  for (v1::Operand* operand : OperandsOf(&operation)) {
    const bool is_new = std::find(replaced_.begin(), replaced_.end(), operand) != replaced_.end();
    if (operand->source_case() != v1::Operand::kHandle) {
      inputs.emplace_back();
      continue;
    }
    if (!is_new) Replace(operand, known_.at(operand->handle()));
    inputs.emplace_back(raw_.at(operand->handle()));
  }
  const OperationView view(operation, kinds_);
  const OutputList& outputs = view.outputs();
  std::vector<Input> existing(outputs.size());
  std::vector<uint64_t> made;
  for (size_t j = 0; j < outputs.size(); ++j) {
    auto* output = const_cast<v1::Output*>(outputs[j]);
    made.push_back(output->existing() ? 0 : output->handle());
    if (!output->existing()) continue;
    // Rules that write a view of the target have set it here.
    const auto target = targets_.find(static_cast<int>(j));
    const Batched& array = target != targets_.end() ? target->second : known_.at(output->handle());
    output->set_handle(array.handle);
    existing[j] = array.info;
  }
  targets_.clear();
  auto results = ResultsOf(operation, inputs, existing);
  if (!results.ok()) return results.status();
  *result_.add_operations() = std::move(operation);
  for (size_t j = 0; j < made.size(); ++j) {
    if (made[j] == 0) continue;
    Batched array{made[j], batched, (*results)[j]};
    raw_[made[j]] = (*results)[j];
    if (!batched && forced_.count(made[j]) > 0) {
      auto copied = Repeated(array);
      if (!copied.ok()) return copied.status();
      array = *copied;
    }
    known_[made[j]] = array;
  }
  return absl::OkStatus();
}

absl::StatusOr<Batched> Batcher::Repeated(const Batched& array) {
  auto repeated = Broadcast(array);
  return repeated.ok() ? Copied(*repeated) : repeated;
}

absl::StatusOr<Batched> Batcher::Broadcast(const Batched& array) {
  if (array.batched) return array;
  Shape shape = array.info.shape;
  shape.insert(shape.begin(), *size_);
  v1::View::Step step;
  step.mutable_broadcast()->mutable_shape()->Assign(shape.begin(), shape.end());
  auto repeated = ViewOf(array, step);
  if (repeated.ok()) repeated->batched = true;
  return repeated;
}

absl::StatusOr<Batched> Batcher::Copied(const Batched& array) {
  v1::Operation copy;
  copy.mutable_copy()->mutable_input()->set_handle(array.handle);
  copy.add_outputs()->set_handle(next_handle_++);
  auto made = Emit(std::move(copy), {array.info}, array.batched);
  if (made.ok()) raw_[made->handle] = made->info;
  return made;
}

absl::StatusOr<Batched> Batcher::Reordered(const Batched& array, const Shape& shape) {
  auto view = Reshaped(array, shape);
  if (view.ok()) return view;
  auto copy = Copied(array);
  return copy.ok() ? Reshaped(*copy, shape) : copy;
}

absl::StatusOr<Batched> Batcher::Numbers(size_t rank) {
  v1::Operation range;
  range.mutable_creation()->mutable_range()->set_data_type(v1::DATA_TYPE_INT64);
  range.mutable_creation()->mutable_range()->mutable_stop()->set_int_value(*size_);
  range.add_outputs()->set_handle(next_handle_++);
  auto numbers = Emit(std::move(range), {}, true);
  return numbers.ok() ? WithRank(*numbers, rank) : numbers;
}

absl::Status Batcher::ApplyRule(v1::Operation* operation) {
  const OperationKind& kind = kinds_.Of(*operation);
  for (const v1::Operand* operand : OperandsOf(operation)) {
    if (!kind.batches_numbers && Find(*operand) == nullptr) return NoRule(*operation);
  }
  return kind.rules.batch(*this, operation);
}

absl::StatusOr<int32_t> Batcher::Shifted(int32_t axis, size_t rank, std::string_view field) const {
  auto normal = NormalizeAxis(axis, rank, field);
  if (!normal.ok()) return normal.status();
  return static_cast<int32_t>(*normal + 1);
}

absl::Status Batcher::FinishReshaped(v1::Operation* operation, const std::vector<Shape>& shapes) {
  std::vector<uint64_t> handles;
  for (auto& output : *operation->mutable_outputs()) {
    handles.push_back(output.handle());
    output.set_handle(next_handle_++);
  }
  std::vector<uint64_t> made;
  for (const auto& output : operation->outputs()) made.push_back(output.handle());
  if (absl::Status status = Finish(*operation, true); !status.ok()) return status;
  for (size_t j = 0; j < handles.size(); ++j) {
    auto reshaped = Reshaped(known_.at(made[j]), shapes[j]);
    if (!reshaped.ok()) return reshaped.status();
    known_[handles[j]] = *reshaped;
    raw_[handles[j]] = reshaped->info;
  }
  operation->clear_kind();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Batcher::OutputHandle(int number) {
  Batched output = known_.at(program_.outputs(number));
  auto repeated = Broadcast(output);
  if (!repeated.ok()) return repeated.status();
  output = *std::move(repeated);
  if (program_.batching().outputs().empty()) return output.handle;
  auto axis = NormalizeAxis(program_.batching().outputs(number), output.info.shape.size(),
                            absl::StrCat("batching.outputs[", number, "]"));
  if (!axis.ok()) return axis.status();
  auto moved = Moved(output, 0, *axis);
  if (!moved.ok()) return moved.status();
  return moved->handle;
}

std::vector<v1::Operand*> Batcher::OperandsOf(v1::Operation* operation) const {
  OperandList list;
  kinds_.Of(*operation).operands(*operation, list);
  std::vector<v1::Operand*> operands;
  for (const v1::Operand* operand : list) operands.push_back(const_cast<v1::Operand*>(operand));
  return operands;
}

void Batcher::SetResult(uint64_t handle, Batched array) {
  raw_[handle] = array.info;
  known_[handle] = std::move(array);
}

absl::Status NoBatching(Batcher& batcher, v1::Operation* operation) {
  return batcher.NoRule(*operation);
}

absl::Status BatchElementwise(Batcher& batcher, v1::Operation* operation) {
  size_t rank = batcher.RankOf(operation);
  for (const v1::Output& output : operation->outputs()) {
    if (output.existing()) rank = std::max(rank, batcher.At(output.handle()).rank());
  }
  if (absl::Status status = batcher.Align(operation, rank); !status.ok()) return status;
  v1::Operand* first = nullptr;
  for (v1::Operand* operand : batcher.OperandsOf(operation)) {
    if (operand->source_case() != v1::Operand::kHandle) continue;
    if (batcher.IsAligned(*operand)) return absl::OkStatus();
    if (first == nullptr) first = operand;
  }
  if (first == nullptr) return batcher.NoRule(*operation);
  const Batched array{first->handle(), false, batcher.Replaced(*first)};
  Shape shape = array.info.shape;
  shape.insert(shape.begin(), rank - shape.size(), 1);
  auto aligned = batcher.Reshaped(array, shape);
  auto whole = aligned.ok() ? batcher.Broadcast(*aligned) : aligned;
  if (!whole.ok()) return whole.status();
  batcher.Replace(first, *whole);
  return absl::OkStatus();
}

absl::StatusOr<v1::Program> BatchProgram(const v1::Program& program,
                                         absl::Span<const ArrayInfo> inputs,
                                         const FunctionTable* functions, const KindTable& kinds) {
  std::set<uint64_t> forced;
  while (true) {
    Batcher batcher(program, functions, kinds, forced);
    auto batched = batcher.Run(inputs);
    // Each time one more of the program's handles.
    if (batched.ok() || !batcher.must_force() || !forced.insert(*batcher.must_force()).second)
      return batched;
  }
}

}  // namespace stride::ops
