#include "server/ops/batching.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/gufunc_cores.h"
#include "server/ops/plan_bodies.h"
#include "server/ops/program_plan.h"
#include "server/ops/routine_plan.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

using Operation = v1::Operation;

// What a handle of the program stands for in the batched one.
struct Batched {
  uint64_t handle = 0;
  bool batched = false;  // its first axis is the batch's
  ArrayInfo info;        // with that axis
  // Of one element of the batch.
  size_t rank() const { return info.shape.size() - (batched ? 1 : 0); }
};

std::string KindName(const Operation& operation) {
  const auto* field = Operation::GetDescriptor()->FindFieldByNumber(operation.kind_case());
  return field == nullptr ? "operation" : std::string(field->name());
}

class Batcher {
 public:
  // `forced`: handles that are the batch's from when they are made, since something of the batch is
  // written into them later.
  Batcher(const v1::Program& program, const FunctionTable* functions,
          const std::set<uint64_t>& forced)
      : program_(program), functions_(functions), forced_(forced) {
    for (const auto& input : program.inputs()) Reserve(input.handle());
    for (const Operation& operation : program.operations()) {
      for (const OutputField& field : CollectOutputs(operation)) Reserve(field.output->handle());
    }
  }

  // After a Run that failed: one more handle to force.
  std::optional<uint64_t> must_force() const { return must_force_; }

  absl::StatusOr<v1::Program> Run(absl::Span<const ArrayInfo> inputs) {
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

 private:
  void Reserve(uint64_t handle) { next_handle_ = std::max(next_handle_, handle + 1); }

  absl::Status AddInput(int number, const ArrayInfo& info) {
    const uint64_t handle = program_.inputs(number).handle();
    Batched input{handle, false, info};
    raw_[handle] = info;
    if (program_.batching().inputs(number).has_axis()) {
      const std::string field = absl::StrCat("batching.inputs[", number, "].axis");
      auto axis =
          NormalizeAxis(program_.batching().inputs(number).axis(), info.shape.size(), field);
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

  // --- views ---

  absl::StatusOr<Batched> ViewOf(const Batched& array, const v1::View::Step& step) {
    Operation operation;
    operation.mutable_view()->mutable_input()->set_handle(array.handle);
    *operation.mutable_view()->add_steps() = step;
    operation.add_outputs()->set_handle(next_handle_++);
    return Emit(std::move(operation), {array.info}, array.batched);
  }
  // One axis in another place, the others in their order.
  absl::StatusOr<Batched> Moved(const Batched& array, size_t from, size_t to) {
    if (from == to) return array;
    std::vector<int32_t> axes(array.info.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    axes.erase(axes.begin() + static_cast<int64_t>(from));
    axes.insert(axes.begin() + static_cast<int64_t>(to), static_cast<int32_t>(from));
    v1::View::Step step;
    step.mutable_transpose()->mutable_axes()->Assign(axes.begin(), axes.end());
    return ViewOf(array, step);
  }
  absl::StatusOr<Batched> Reshaped(const Batched& array, const Shape& shape) {
    if (array.info.shape == shape) return array;
    v1::View::Step step;
    step.mutable_reshape()->mutable_shape()->Assign(shape.begin(), shape.end());
    return ViewOf(array, step);
  }
  // With axes of length one behind the batch's, so that one element has `rank` axes and broadcasts
  // as it would alone.
  absl::StatusOr<Batched> WithRank(const Batched& array, size_t rank) {
    if (!array.batched || array.rank() >= rank) return array;
    Shape shape = array.info.shape;
    shape.insert(shape.begin() + 1, rank - array.rank(), 1);
    return Reshaped(array, shape);
  }

  // --- operations ---

  // Appends it and tells what its first output is. `arrays`: its operands' descriptions; operands
  // are not looked up by handle.
  absl::StatusOr<Batched> Emit(Operation operation, const std::vector<ArrayInfo>& arrays,
                               bool batched) {
    std::vector<Input> inputs(arrays.begin(), arrays.end());
    auto plan = PlanOperation(operation, inputs, std::vector<Input>(1), functions_);
    if (!plan.ok()) return plan.status();
    Batched made{operation.outputs(0).handle(), batched, plan->outputs[0]};
    *result_.add_operations() = std::move(operation);
    return made;
  }

  const Batched* Find(const v1::Operand& operand) const {
    return operand.source_case() == v1::Operand::kHandle ? &known_.at(operand.handle()) : nullptr;
  }
  bool IsBatched(const v1::Operand& operand) const {
    const Batched* found = Find(operand);
    return found != nullptr && found->batched;
  }

  absl::Status NoRule(const Operation& operation) const {
    return NotImplemented(
        absl::StrCat("batching of ", KindName(operation)),
        absl::StrCat("this operation has no rule for a batch as it is used here: ",
                     KindName(operation)));
  }

  // Operands as they are to be in the batched operation, in CollectOperands' order.
  using Operands = std::vector<v1::Operand*>;
  Operands OperandsOf(Operation* operation) const {
    Operands operands;
    for (const OperandField& field : CollectOperands(*operation))
      operands.push_back(const_cast<v1::Operand*>(field.operand));
    return operands;
  }

  // The greatest of an element's operands, before any is replaced.
  size_t RankOf(Operation* operation) const {
    size_t rank = 0;
    for (const v1::Operand* operand : OperandsOf(operation)) {
      if (const Batched* found = Find(*operand)) rank = std::max(rank, found->rank());
    }
    return rank;
  }
  // All with that rank.
  absl::Status Align(Operation* operation) {
    const size_t rank = RankOf(operation);
    return AlignTo(operation, [rank](size_t) { return rank; });
  }
  template <typename RankOf>
  absl::Status AlignTo(Operation* operation, const RankOf& rank_of) {
    const Operands operands = OperandsOf(operation);
    for (size_t i = 0; i < operands.size(); ++i) {
      const Batched* found = Find(*operands[i]);
      if (found == nullptr) continue;
      auto aligned = WithRank(*found, rank_of(i));
      if (!aligned.ok()) return aligned.status();
      Replace(operands[i], *aligned);
    }
    return absl::OkStatus();
  }
  // The operand is to be this array of the batched program.
  void Replace(v1::Operand* operand, const Batched& array) {
    operand->set_handle(array.handle);
    raw_[array.handle] = array.info;
    if (array.batched) aligned_.insert(array.handle);
    replaced_.push_back(operand);
  }

  absl::Status AddOperation(const Operation& given) {
    Operation operation = given;
    bool batched = false, into_batched = false;
    for (const OperandField& field : CollectOperands(given))
      batched = batched || IsBatched(*field.operand);
    for (const OutputField& field : CollectOutputs(given)) {
      const v1::Output& output = *field.output;
      if (output.existing()) into_batched = into_batched || known_.at(output.handle()).batched;
    }
    if (batched) {
      if (absl::Status status = CheckTargets(given); !status.ok()) return status;
    }
    if (batched || into_batched) {
      if (absl::Status status = CheckElement(given); !status.ok()) return status;
    }
    if (given.has_view() && given.outputs_size() == 1) {
      const uint64_t input = given.view().input().handle(), output = given.outputs(0).handle();
      base_[output] = base_.count(input) > 0 ? base_.at(input) : input;
    }
    replaced_.clear();
    if (batched || into_batched) {
      absl::Status status = ApplyRule(&operation);
      if (!status.ok()) return status;
      if (operation.kind_case() == Operation::KIND_NOT_SET) return absl::OkStatus();
    }
    return Finish(operation, batched || into_batched);
  }

  // What differs between the batch's elements is written only into what does.
  absl::Status CheckTargets(const Operation& given) {
    for (const v1::Output& output : given.outputs()) {
      if (!output.existing() || known_.at(output.handle()).batched) continue;
      const auto base = base_.find(output.handle());
      const uint64_t whole = base == base_.end() ? output.handle() : base->second;
      for (const auto& input : program_.inputs()) {
        if (input.handle() != whole) continue;
        return NotImplemented(
            absl::StrCat("batching of ", KindName(given), " in place"),
            "an array that all elements of the batch share cannot be written; make a new array");
      }
      must_force_ = whole;
      return absl::FailedPreconditionError("a target has to have the batch's axis");
    }
    return absl::OkStatus();
  }

  // Types the operation for one element of the batch, so that rules can rely on the numbers of its
  // operands, indices and outputs.
  absl::Status CheckElement(const Operation& operation) {
    if (operation.has_kernel_launch() || operation.has_loop() || operation.has_branch())
      return NoRule(operation);
    std::vector<Input> inputs, existing;
    for (const OperandField& field : CollectOperands(operation)) {
      const Batched* found = Find(*field.operand);
      inputs.push_back(found == nullptr ? Input() : Input(ElementOf(*found)));
    }
    for (const OutputField& field : CollectOutputs(operation)) {
      const bool is_old = field.output->existing();
      existing.push_back(is_old ? Input(ElementOf(known_.at(field.output->handle()))) : Input());
    }
    return PlanOperation(operation, inputs, existing, functions_).status();
  }
  static ArrayInfo ElementOf(const Batched& array) {
    ArrayInfo element = array.info;
    if (!array.batched) return element;
    element.shape.erase(element.shape.begin());
    element.strides.erase(element.strides.begin());
    return element;
  }

  absl::StatusOr<std::vector<ArrayInfo>> ResultsOf(const Operation& operation,
                                                   const std::vector<Input>& inputs,
                                                   const std::vector<Input>& existing) {
    if (operation.has_loop() || operation.has_branch()) {
      ProgramStep step;
      step.operation = operation;
      absl::Status status = PlanBodies(inputs, existing, functions_, &step);
      if (!status.ok()) return status;
      return std::move(step.results);
    }
    auto plan = PlanOperation(operation, inputs, existing, functions_);
    if (!plan.ok()) return plan.status();
    return std::vector<ArrayInfo>(plan->outputs.begin(), plan->outputs.end());
  }

  // Adds the operation. Operands that no rule replaced refer to the arrays of the same handle.
  absl::Status Finish(Operation& operation, bool batched) {
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
    const std::vector<OutputField> outputs = CollectOutputs(operation);
    std::vector<Input> existing(outputs.size());
    std::vector<uint64_t> made;
    for (size_t j = 0; j < outputs.size(); ++j) {
      auto* output = const_cast<v1::Output*>(outputs[j].output);
      made.push_back(output->existing() ? 0 : output->handle());
      if (!output->existing()) continue;
      // Rules that write a view of the target have set it here.
      const auto target = targets_.find(static_cast<int>(j));
      const Batched& array =
          target != targets_.end() ? target->second : known_.at(output->handle());
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

  // With the batch's axis in front, in memory of its own.
  absl::StatusOr<Batched> Repeated(const Batched& array) {
    auto repeated = Broadcast(array);
    return repeated.ok() ? Copied(*repeated) : repeated;
  }
  absl::StatusOr<Batched> Broadcast(const Batched& array) {
    if (array.batched) return array;
    Shape shape = array.info.shape;
    shape.insert(shape.begin(), *size_);
    v1::View::Step step;
    step.mutable_broadcast()->mutable_shape()->Assign(shape.begin(), shape.end());
    auto repeated = ViewOf(array, step);
    if (repeated.ok()) repeated->batched = true;
    return repeated;
  }
  absl::StatusOr<Batched> Copied(const Batched& array) {
    Operation copy;
    copy.mutable_copy()->mutable_input()->set_handle(array.handle);
    copy.add_outputs()->set_handle(next_handle_++);
    auto made = Emit(std::move(copy), {array.info}, array.batched);
    if (made.ok()) raw_[made->handle] = made->info;
    return made;
  }
  // As Reshaped, by a copy where no view can be had.
  absl::StatusOr<Batched> Reordered(const Batched& array, const Shape& shape) {
    auto view = Reshaped(array, shape);
    if (view.ok()) return view;
    auto copy = Copied(array);
    return copy.ok() ? Reshaped(*copy, shape) : copy;
  }
  // The numbers of the batch's elements, with `rank` axes of length one behind.
  absl::StatusOr<Batched> Numbers(size_t rank) {
    Operation range;
    range.mutable_creation()->mutable_range()->set_data_type(v1::DATA_TYPE_INT64);
    range.mutable_creation()->mutable_range()->mutable_stop()->set_int_value(*size_);
    range.add_outputs()->set_handle(next_handle_++);
    auto numbers = Emit(std::move(range), {}, true);
    return numbers.ok() ? WithRank(*numbers, rank) : numbers;
  }

  absl::Status ApplyRule(Operation* operation) {
    if (!operation->has_ufunc() && !operation->has_expression() && !operation->has_apply_at()) {
      // Of numbers only those know what to make.
      for (const v1::Operand* operand : OperandsOf(operation)) {
        if (Find(*operand) == nullptr) return NoRule(*operation);
      }
    }
    switch (operation->kind_case()) {
      case Operation::kUfunc:
      case Operation::kExpression:
      case Operation::kCopy:
        return OfLoop(operation);
      case Operation::kReduction:
        return OfReduction(operation);
      case Operation::kAccumulation: {
        auto* accumulation = operation->mutable_accumulation();
        const size_t rank = Find(accumulation->input())->rank();
        if (!accumulation->has_axis() && rank != 1) return NoRule(*operation);
        auto axis = Shifted(accumulation->axis(), rank, "accumulation.axis");
        if (!axis.ok()) return axis.status();
        accumulation->set_axis(*axis);
        return absl::OkStatus();
      }
      case Operation::kSort: {
        auto* sort = operation->mutable_sort();
        const size_t rank = Find(sort->input())->rank();
        if (rank == 0) return NoRule(*operation);
        if (sort->more_keys_size() > 0) {
          if (absl::Status status = OfWholeBatch(operation); !status.ok()) return status;
        }
        if (!sort->has_axis()) return absl::OkStatus();
        auto axis = Shifted(sort->axis(), rank, "sort.axis");
        if (!axis.ok()) return axis.status();
        sort->set_axis(*axis);
        return absl::OkStatus();
      }
      case Operation::kSelect:
        return OfSelect(operation);
      case Operation::kPartition: {
        auto* partition = operation->mutable_partition();
        const size_t rank = Find(partition->input())->rank();
        if (rank == 0) return NoRule(*operation);
        auto axis = Shifted(partition->has_axis() ? partition->axis() : -1, rank, "partition.axis");
        if (!axis.ok()) return axis.status();
        partition->set_axis(*axis);
        return absl::OkStatus();
      }
      case Operation::kInterpolate:
        return IsBatched(operation->interpolate().known()) ||
                       IsBatched(operation->interpolate().values())
                   ? NoRule(*operation)
                   : absl::OkStatus();
      case Operation::kTopK: {
        auto* top_k = operation->mutable_top_k();
        const size_t rank = Find(top_k->input())->rank();
        if (rank == 0) return NoRule(*operation);
        auto axis = Shifted(top_k->has_axis() ? top_k->axis() : -1, rank, "top_k.axis");
        if (!axis.ok()) return axis.status();
        top_k->set_axis(*axis);
        return absl::OkStatus();
      }
      case Operation::kGroupReduce: {
        auto* group = operation->mutable_group_reduce();
        if (IsBatched(group->groups())) return NoRule(*operation);
        auto axis = Shifted(group->axis(), Find(group->values())->rank(), "group_reduce.axis");
        if (!axis.ok()) return axis.status();
        group->set_axis(*axis);
        return absl::OkStatus();
      }
      case Operation::kOuter:
        return OfOuter(operation);
      case Operation::kScatter:
        if (operation->scatter().along_axis()) return OfScatterAlong(operation);
        return OfAssignment(operation, operation->mutable_scatter());
      case Operation::kApplyAt:
        return OfAssignment(operation, operation->mutable_apply_at());
      case Operation::kSearch:
        return IsBatched(operation->search().sorted()) ? NoRule(*operation) : absl::OkStatus();
      case Operation::kGather:
        return OfGather(operation);
      case Operation::kReduceAt: {
        auto* reduce = operation->mutable_reduce_at();
        if (IsBatched(reduce->indices())) return NoRule(*operation);
        auto axis = Shifted(reduce->axis(), Find(reduce->input())->rank(), "reduce_at.axis");
        if (!axis.ok()) return axis.status();
        reduce->set_axis(*axis);
        return absl::OkStatus();
      }
      case Operation::kMatmul:
        return OfMatmul(operation);
      case Operation::kGufunc:
        return OfGufunc(operation);
      case Operation::kView:
        return OfView(operation);
      case Operation::kLinalg:
        return OfLinalg(operation);
      case Operation::kFft:
        return OfFft(operation);
      default:
        return NoRule(*operation);
    }
  }

  // Every operand with the batch's axis in front.
  absl::Status OfWholeBatch(Operation* operation) {
    for (v1::Operand* operand : OperandsOf(operation)) {
      auto whole = Broadcast(*Find(*operand));
      if (!whole.ok()) return whole.status();
      Replace(operand, *whole);
    }
    return absl::OkStatus();
  }

  absl::Status OfSelect(Operation* operation) {
    auto* select = operation->mutable_select();
    const size_t rank = Find(select->input())->rank();
    if (rank == 0) return NoRule(*operation);
    auto axis = Shifted(select->has_axis() ? select->axis() : -1, rank, "select.axis");
    if (!axis.ok()) return axis.status();
    select->set_axis(*axis);
    const Batched ranks = *Find(select->ranks());
    // Ranks of one axis that the batch's elements share are the same for all slices.
    if (!ranks.batched && ranks.rank() == 1) return absl::OkStatus();
    auto own = Broadcast(ranks);
    if (own.ok() && ranks.rank() == 1) {
      Shape shape(rank + 1, 1);
      shape[0] = own->info.shape[0];
      shape[*axis] = own->info.shape[1];
      own = Reshaped(*own, shape);
    }
    if (!own.ok()) return own.status();
    Replace(select->mutable_ranks(), *own);
    auto input = Broadcast(*Find(select->input()));
    if (!input.ok()) return input.status();
    Replace(select->mutable_input(), *input);
    return absl::OkStatus();
  }

  // An axis of one element, in the whole.
  absl::StatusOr<int32_t> Shifted(int32_t axis, size_t rank, std::string_view field) const {
    auto normal = NormalizeAxis(axis, rank, field);
    if (!normal.ok()) return normal.status();
    return static_cast<int32_t>(*normal + 1);
  }

  // Operands broadcast as they would alone; into something of the batch, one of them as a batch.
  absl::Status OfLoop(Operation* operation) {
    size_t rank = RankOf(operation);
    for (const v1::Output& output : operation->outputs()) {
      if (output.existing()) rank = std::max(rank, known_.at(output.handle()).rank());
    }
    if (absl::Status status = AlignTo(operation, [rank](size_t) { return rank; }); !status.ok())
      return status;
    const Operands operands = OperandsOf(operation);
    for (const v1::Operand* operand : operands) {
      if (operand->source_case() == v1::Operand::kHandle && IsOfBatch(operand->handle()))
        return absl::OkStatus();
    }
    for (v1::Operand* operand : operands) {
      if (operand->source_case() != v1::Operand::kHandle) continue;
      Batched array{operand->handle(), false, raw_.at(operand->handle())};
      Shape shape = array.info.shape;
      shape.insert(shape.begin(), rank - shape.size(), 1);
      auto aligned = Reshaped(array, shape);
      if (!aligned.ok()) return aligned.status();
      auto whole = Broadcast(*aligned);
      if (!whole.ok()) return whole.status();
      Replace(operand, *whole);
      return absl::OkStatus();
    }
    return NoRule(*operation);
  }
  // Of a handle that an operand was given.
  bool IsOfBatch(uint64_t handle) const { return aligned_.count(handle) > 0; }

  absl::Status OfReduction(Operation* operation) {
    auto* reduction = operation->mutable_reduction();
    const size_t rank = RankOf(operation);
    std::vector<int32_t> axes(reduction->axes().begin(), reduction->axes().end());
    auto normal = NormalizeAxes(axes, rank, "reduction.axes");
    if (!normal.ok()) return normal.status();
    const bool is_index = reduction->function() == v1::Reduction::FUNCTION_ARGMIN ||
                          reduction->function() == v1::Reduction::FUNCTION_ARGMAX;
    if (rank == 0 || (normal->empty() && is_index && rank > 1))
      return OfWholeElements(operation, rank);
    if (absl::Status status = Align(operation); !status.ok()) return status;
    reduction->clear_axes();
    if (normal->empty()) {
      for (size_t axis = 0; axis < rank; ++axis)
        reduction->add_axes(static_cast<int32_t>(axis + 1));
    }
    for (int axis : *normal) reduction->add_axes(axis + 1);
    return absl::OkStatus();
  }

  // Numbers, and places among elements of several axes: neither can be said by axes, so that all of
  // an element goes along one.
  absl::Status OfWholeElements(Operation* operation, size_t rank) {
    auto* reduction = operation->mutable_reduction();
    for (v1::Operand* operand : OperandsOf(operation)) {
      const Batched array = *Find(*operand);
      const bool single = operation->reduction().more_inputs_size() == 0 &&
                          !operation->reduction().has_expression();
      if (rank > 0 && (!array.batched || !single)) return NoRule(*operation);
      Shape shape(array.info.shape.begin(), array.info.shape.begin() + (array.batched ? 1 : 0));
      shape.push_back(1);
      for (size_t i = array.batched ? 1 : 0; i < array.info.shape.size(); ++i)
        shape.back() *= array.info.shape[i];
      auto flat = Reordered(array, shape);
      if (!flat.ok()) return flat.status();
      Replace(operand, *flat);
    }
    const bool keeps = reduction->keep_dims() && rank > 0;
    reduction->clear_axes();
    reduction->add_axes(1);
    reduction->set_keep_dims(false);
    if (!keeps) return absl::OkStatus();
    const v1::Output output = operation->outputs(0);
    if (output.existing()) return NoRule(*operation);
    Shape shape(rank + 1, 1);
    shape[0] = *size_;
    return FinishReshaped(operation, {shape});
  }

  // Adds the operation, whose results in these shapes are what the program means.
  absl::Status FinishReshaped(Operation* operation, const std::vector<Shape>& shapes) {
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

  // A ufunc of views: the left one has axes of length one behind its own, one for each of the
  // right.
  absl::Status OfOuter(Operation* operation) {
    const v1::Outer outer = operation->outer();
    const Batched left = *Find(outer.left()), right = *Find(outer.right());
    Shape shape = left.info.shape;
    shape.insert(shape.end(), right.rank(), 1);
    auto first = Reshaped(left, shape);
    if (!first.ok()) return first.status();
    auto second = WithRank(right, left.rank() + right.rank());
    if (!second.ok()) return second.status();
    v1::Ufunc* ufunc = operation->mutable_ufunc();
    ufunc->set_function(outer.function());
    ufunc->set_data_type(outer.data_type());
    ufunc->set_casting(outer.casting());
    Replace(ufunc->add_inputs(), *first);
    Replace(ufunc->add_inputs(), *second);
    replaced_.clear();
    for (auto& input : *ufunc->mutable_inputs()) replaced_.push_back(&input);
    return absl::OkStatus();
  }

  // --- by indices ---

  template <typename Message>
  bool HasBatchedIndex(const Message& message) const {
    return std::any_of(message.indices().begin(), message.indices().end(),
                       [&](const v1::Operand& index) { return IsBatched(index); });
  }
  // Indices in one rank, which is returned.
  template <typename Message>
  absl::StatusOr<size_t> AlignIndices(Message* message) {
    size_t rank = 0;
    for (const v1::Operand& index : message->indices()) rank = std::max(rank, Find(index)->rank());
    for (auto& index : *message->mutable_indices()) {
      auto aligned = WithRank(*Find(index), rank);
      if (!aligned.ok()) return aligned.status();
      Replace(&index, *aligned);
    }
    return rank;
  }
  // In front of the indices the number of the batch's element.
  template <typename Message>
  absl::Status AddNumbers(Message* message, size_t rank) {
    auto numbers = Numbers(rank);
    if (!numbers.ok()) return numbers.status();
    // Operands move: those that were replaced are found again by their handles.
    Message before = *message;
    message->clear_indices();
    Replace(message->add_indices(), *numbers);
    for (const v1::Operand& index : before.indices()) *message->add_indices() = index;
    replaced_.clear();
    for (auto& index : *message->mutable_indices()) replaced_.push_back(&index);
    return absl::OkStatus();
  }
  // The axis of one element, from 0.
  absl::StatusOr<size_t> AxisOf(int32_t axis, size_t rank, std::string_view field) const {
    return NormalizeAxis(axis, rank, field);
  }

  absl::Status OfGather(Operation* operation) {
    auto* gather = operation->mutable_gather();
    const Batched input = *Find(gather->input());
    auto axis = AxisOf(gather->axis(), input.rank(), "gather.axis");
    if (!axis.ok()) return axis.status();
    if (gather->along_axis()) return OfGatherAlong(gather, *axis);
    if (!HasBatchedIndex(*gather)) {
      gather->set_axis(static_cast<int32_t>(*axis + 1));
      return absl::OkStatus();
    }
    // The batch's axis goes where the first of the indexed axes is, and comes back in the result.
    auto rank = AlignIndices(gather);
    if (!rank.ok()) return rank.status();
    if (input.batched) {
      auto moved = Moved(input, 0, *axis);
      if (!moved.ok()) return moved.status();
      if (absl::Status status = AddNumbers(gather, *rank); !status.ok()) return status;
      Replace(gather->mutable_input(), *moved);
    }
    gather->set_axis(static_cast<int32_t>(*axis));
    if (*axis == 0) return absl::OkStatus();
    if (operation->outputs(0).existing()) return NoRule(*operation);
    const uint64_t handle = operation->outputs(0).handle();
    operation->mutable_outputs(0)->set_handle(next_handle_++);
    const uint64_t made = operation->outputs(0).handle();
    if (absl::Status status = Finish(*operation, true); !status.ok()) return status;
    auto moved = Moved(known_.at(made), *axis, 0);
    if (!moved.ok()) return moved.status();
    known_[handle] = *moved;
    raw_[handle] = moved->info;
    operation->clear_kind();
    return absl::OkStatus();
  }

  // Operands without the batch's axis get one of length one, which broadcasts.
  absl::Status OfGatherAlong(v1::Gather* gather, size_t axis) {
    for (v1::Operand* operand : {gather->mutable_input(), gather->mutable_indices(0)}) {
      const Batched array = *Find(*operand);
      if (array.batched) continue;
      Shape shape = array.info.shape;
      shape.insert(shape.begin(), 1);
      auto reshaped = Reshaped(array, shape);
      if (!reshaped.ok()) return reshaped.status();
      Replace(operand, *reshaped);
    }
    gather->set_axis(static_cast<int32_t>(axis + 1));
    return absl::OkStatus();
  }

  absl::Status OfScatterAlong(Operation* operation) {
    auto* scatter = operation->mutable_scatter();
    const size_t rank = known_.at(operation->outputs(0).handle()).rank();
    auto axis = Shifted(scatter->axis(), rank, "scatter.axis");
    if (!axis.ok()) return axis.status();
    scatter->set_axis(*axis);
    if (!IsBatched(scatter->indices(0))) {
      const Batched indices = *Find(scatter->indices(0));
      Shape shape = indices.info.shape;
      shape.insert(shape.begin(), 1);
      auto reshaped = Reshaped(indices, shape);
      if (!reshaped.ok()) return reshaped.status();
      Replace(scatter->mutable_indices(0), *reshaped);
    }
    auto values = WithRank(*Find(scatter->values()), rank);
    if (!values.ok()) return values.status();
    Replace(scatter->mutable_values(), *values);
    return absl::OkStatus();
  }

  // Scatter and ApplyAt, into a target of the batch.
  template <typename Message>
  absl::Status OfAssignment(Operation* operation, Message* message) {
    const Batched target = known_.at(operation->outputs(0).handle());
    auto axis = AxisOf(message->axis(), target.rank(), "axis");
    if (!axis.ok()) return axis.status();
    for (const v1::Operand& index : message->indices()) {
      if (Find(index) == nullptr) return NoRule(*operation);
    }
    const auto count = static_cast<size_t>(message->indices_size());
    if (target.rank() < *axis + count) return NoRule(*operation);
    const bool own_indices = HasBatchedIndex(*message);
    auto rank = AlignIndices(message);
    if (!rank.ok()) return rank.status();
    const size_t result_rank = target.rank() - count + *rank;
    const bool has_values = message->has_values() && Find(message->values()) != nullptr;
    std::optional<Batched> values;
    if (has_values) {
      auto aligned = WithRank(*Find(message->values()), result_rank);
      if (!aligned.ok()) return aligned.status();
      values = *aligned;
    }
    if (!own_indices) {
      message->set_axis(static_cast<int32_t>(*axis + 1));
    } else {
      auto moved = Moved(target, 0, *axis);
      if (!moved.ok()) return moved.status();
      targets_[0] = *moved;
      if (absl::Status status = AddNumbers(message, *rank); !status.ok()) return status;
      message->set_axis(static_cast<int32_t>(*axis));
      if (values && values->batched) {
        auto placed = Moved(*values, 0, *axis);
        if (!placed.ok()) return placed.status();
        values = *placed;
      } else if (values && values->rank() > result_rank - *axis) {
        // Its axes before those of the indices stay before the batch's.
        Shape shape = values->info.shape;
        shape.insert(shape.end() - static_cast<int64_t>(result_rank - *axis), 1);
        auto placed = Reshaped(*values, shape);
        if (!placed.ok()) return placed.status();
        values = *placed;
      }
    }
    if (values) Replace(message->mutable_values(), *values);
    return absl::OkStatus();
  }

  // Vectors become matrices, and the axis that they lack goes from the result.
  absl::Status OfMatmul(Operation* operation) {
    const Batched left = *Find(operation->matmul().left());
    const Batched right = *Find(operation->matmul().right());
    const bool left_vector = left.rank() == 1, right_vector = right.rank() == 1;
    if (left.rank() == 0 || right.rank() == 0) return NoRule(*operation);
    const size_t rank = std::max({left.rank(), right.rank(), size_t{2}});
    auto matrix = [&](const Batched& array, bool is_left) -> absl::StatusOr<Batched> {
      Batched full = array;
      if (array.rank() == 1) {
        Shape shape = array.info.shape;
        shape.insert(shape.end() - (is_left ? 1 : 0), 1);
        auto reshaped = Reshaped(array, shape);
        if (!reshaped.ok()) return reshaped.status();
        full = *reshaped;
      }
      return WithRank(full, rank);
    };
    auto a = matrix(left, true);
    if (!a.ok()) return a.status();
    auto b = matrix(right, false);
    if (!b.ok()) return b.status();
    Operation product;
    product.mutable_matmul()->mutable_left()->set_handle(a->handle);
    product.mutable_matmul()->mutable_right()->set_handle(b->handle);
    product.mutable_matmul()->set_data_type(operation->matmul().data_type());
    const uint64_t output = operation->outputs(0).handle();
    product.add_outputs()->set_handle(left_vector || right_vector ? next_handle_++ : output);
    auto made = Emit(std::move(product), {a->info, b->info}, true);
    if (!made.ok()) return made.status();
    if (left_vector || right_vector) {
      Shape shape = made->info.shape;
      if (right_vector) shape.pop_back();
      if (left_vector) shape.erase(shape.end() - (right_vector ? 1 : 2));
      made = Reshaped(*made, shape);
      if (!made.ok()) return made.status();
    }
    known_[output] = *made;
    known_[output].batched = true;
    operation->clear_kind();  // nothing is left to do
    return absl::OkStatus();
  }

  // Axes before the last two are a batch of matrices already. A vector on the right of Solve
  // becomes a column: a matrix of the elements' vectors would be one right side for all.
  absl::Status OfLinalg(Operation* operation) {
    auto* linalg = operation->mutable_linalg();
    if (linalg->operands_size() == 0 || Find(linalg->operands(0))->rank() < 2)
      return NoRule(*operation);
    if (linalg->function() != v1::Linalg::FUNCTION_SOLVE || linalg->operands_size() != 2)
      return absl::OkStatus();
    const Batched right = *Find(linalg->operands(1));
    if (right.rank() != 1) return Align(operation);
    if (!right.batched) return absl::OkStatus();
    if (operation->outputs(0).existing()) return NoRule(*operation);
    const size_t rank = Find(linalg->operands(0))->rank();
    auto left = WithRank(*Find(linalg->operands(0)), rank);
    if (!left.ok()) return left.status();
    Shape shape = right.info.shape;
    shape.push_back(1);
    auto column = Reshaped(right, shape);
    if (!column.ok()) return column.status();
    column = WithRank(*column, rank);
    if (!column.ok()) return column.status();
    Replace(linalg->mutable_operands(0), *left);
    Replace(linalg->mutable_operands(1), *column);
    auto plan =
        PlanOperation(*operation, {left->info, column->info}, std::vector<Input>(1), functions_);
    if (!plan.ok()) return plan.status();
    Shape result = plan->outputs[0].shape;
    result.pop_back();
    return FinishReshaped(operation, {result});
  }

  absl::Status OfFft(Operation* operation) {
    auto* fft = operation->mutable_fft();
    const size_t rank = Find(fft->input())->rank();
    if (rank == 0) return NoRule(*operation);
    std::vector<int32_t> axes(fft->axes().begin(), fft->axes().end());
    if (axes.empty()) {
      axes.resize(rank);
      std::iota(axes.begin(), axes.end(), 0);
    }
    fft->clear_axes();
    for (int32_t given : axes) {
      auto axis = Shifted(given, rank, "fft.axes");
      if (!axis.ok()) return axis.status();
      fft->add_axes(*axis);
    }
    return absl::OkStatus();
  }

  absl::Status OfGufunc(Operation* operation) {
    const v1::Gufunc& gufunc = operation->gufunc();
    const std::string& name = gufunc.function();
    const ClientFunction* own = functions_ == nullptr ? nullptr : functions_->Find(name);
    absl::StatusOr<CoreLayout> layout = absl::NotFoundError("");
    if (IsBuiltInGufunc(name)) {
      layout = ParseLayout(LayoutOf(name), "gufunc.function");
    } else if (own != nullptr && own->kind == ClientFunction::Kind::kGufunc) {
      layout = own->layout;
    }
    const bool placed = !gufunc.axes().empty() || gufunc.has_axis() || gufunc.keep_dims();
    if (!layout.ok() || placed || layout->num_inputs != static_cast<size_t>(gufunc.inputs_size()))
      return NoRule(*operation);
    // The operands of one element.
    std::vector<Input> elements;
    for (const v1::Operand& operand : gufunc.inputs()) {
      elements.emplace_back(ElementOf(*Find(operand)));
    }
    auto cores = ReadCoreRanks(*layout, elements);
    if (!cores.ok()) return cores.status();
    size_t loop = 0;
    for (size_t i = 0; i < elements.size(); ++i)
      loop = std::max(loop, elements[i]->shape.size() - cores->ranks[i]);
    for (size_t i = 0; i < elements.size(); ++i) {
      v1::Operand* operand = operation->mutable_gufunc()->mutable_inputs(static_cast<int>(i));
      auto whole = WithMissing(*Find(*operand), *layout, *cores, i);
      if (!whole.ok()) return whole.status();
      auto aligned = WithRank(*whole, loop + layout->operands[i].size());
      if (!aligned.ok()) return aligned.status();
      Replace(operand, *aligned);
    }
    const bool lacks = std::count(cores->missing.begin(), cores->missing.end(), true) > 0;
    return lacks ? WithoutMissing(operation, *layout, *cores) : absl::OkStatus();
  }

  // Dimensions that one element's operand lacks as axes of length one.
  absl::StatusOr<Batched> WithMissing(const Batched& array, const CoreLayout& layout,
                                      const Cores& cores, size_t number) {
    Shape shape = array.info.shape;
    size_t place = shape.size() - cores.ranks[number];
    for (int dimension : layout.operands[number]) {
      if (cores.missing[dimension]) shape.insert(shape.begin() + static_cast<int64_t>(place), 1);
      ++place;
    }
    return Reshaped(array, shape);
  }

  // The results without them.
  absl::Status WithoutMissing(Operation* operation, const CoreLayout& layout, const Cores& cores) {
    std::vector<Input> inputs;
    for (const auto& input : operation->gufunc().inputs())
      inputs.emplace_back(raw_.at(input.handle()));
    auto plan = PlanOperation(*operation, inputs,
                              std::vector<Input>(static_cast<size_t>(operation->outputs_size())),
                              functions_);
    if (!plan.ok()) return plan.status();
    std::vector<Shape> shapes;
    for (int j = 0; j < operation->outputs_size(); ++j) {
      if (operation->outputs(j).existing()) return NoRule(*operation);
      const auto& dimensions = layout.operands[layout.num_inputs + static_cast<size_t>(j)];
      Shape shape = plan->outputs[static_cast<size_t>(j)].shape;
      const size_t first = shape.size() - dimensions.size();
      for (size_t d = dimensions.size(); d-- > 0;) {
        if (cores.missing[dimensions[d]])
          shape.erase(shape.begin() + static_cast<int64_t>(first + d));
      }
      shapes.push_back(std::move(shape));
    }
    return FinishReshaped(operation, shapes);
  }

  absl::Status OfView(Operation* operation) {
    const Batched input = *Find(operation->view().input());
    const int64_t batch = *size_;
    Batched array = input;
    for (const v1::View::Step& given : operation->view().steps()) {
      v1::View::Step step = given;
      switch (given.kind_case()) {
        case v1::View::Step::kSlice: {
          auto axis = Shifted(given.slice().axis(), array.rank(), "view.steps");
          if (!axis.ok()) return axis.status();
          step.mutable_slice()->set_axis(*axis);
          break;
        }
        case v1::View::Step::kTranspose: {
          auto* axes = step.mutable_transpose()->mutable_axes();
          axes->Clear();
          axes->Add(0);
          const auto rank = static_cast<int32_t>(array.rank());
          for (int32_t i = 0; i < rank; ++i) {
            int32_t axis = rank - 1 - i;
            if (!given.transpose().axes().empty()) {
              if (given.transpose().axes_size() != rank) return NoRule(*operation);
              axis = given.transpose().axes(i);
            }
            axes->Add(axis < 0 ? axis + rank + 1 : axis + 1);
          }
          break;
        }
        case v1::View::Step::kReshape:
          step.mutable_reshape()->clear_shape();
          step.mutable_reshape()->add_shape(batch);
          step.mutable_reshape()->mutable_shape()->MergeFrom(given.reshape().shape());
          break;
        case v1::View::Step::kBroadcast: {
          auto aligned = WithRank(array, static_cast<size_t>(given.broadcast().shape_size()));
          if (!aligned.ok()) return aligned.status();
          array = *aligned;
          step.mutable_broadcast()->clear_shape();
          step.mutable_broadcast()->add_shape(batch);
          step.mutable_broadcast()->mutable_shape()->MergeFrom(given.broadcast().shape());
          break;
        }
        default:
          return NoRule(*operation);
      }
      auto viewed = ViewOf(array, step);
      if (!viewed.ok()) return viewed.status();
      array = *viewed;
    }
    known_[operation->outputs(0).handle()] = array;
    operation->clear_kind();
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> OutputHandle(int number) {
    Batched output = known_.at(program_.outputs(number));
    if (!output.batched) {
      Shape shape = output.info.shape;
      shape.insert(shape.begin(), *size_);
      v1::View::Step step;
      step.mutable_broadcast()->mutable_shape()->Assign(shape.begin(), shape.end());
      auto repeated = ViewOf(output, step);
      if (!repeated.ok()) return repeated.status();
      output = *repeated;
      output.batched = true;
    }
    if (program_.batching().outputs().empty()) return output.handle;
    auto axis = NormalizeAxis(program_.batching().outputs(number), output.info.shape.size(),
                              absl::StrCat("batching.outputs[", number, "]"));
    if (!axis.ok()) return axis.status();
    auto moved = Moved(output, 0, *axis);
    if (!moved.ok()) return moved.status();
    return moved->handle;
  }

  const v1::Program& program_;
  const FunctionTable* const functions_;
  v1::Program result_;
  std::map<uint64_t, Batched> known_;         // by handle of the given program
  std::map<uint64_t, ArrayInfo> raw_;         // by handle of the batched one
  std::map<uint64_t, uint64_t> base_;         // of views' handles in the given program
  std::set<uint64_t> aligned_;                // handles of the batched one with the batch's axis
  std::vector<const v1::Operand*> replaced_;  // of the operation under way
  std::map<int, Batched> targets_;            // of its outputs, where they are views
  const std::set<uint64_t>& forced_;
  std::optional<uint64_t> must_force_;
  std::optional<int64_t> size_;  // of the batch
  uint64_t next_handle_ = 1;
};

}  // namespace

absl::StatusOr<v1::Program> BatchProgram(const v1::Program& program,
                                         absl::Span<const ArrayInfo> inputs,
                                         const FunctionTable* functions) {
  std::set<uint64_t> forced;
  while (true) {
    Batcher batcher(program, functions, forced);
    auto batched = batcher.Run(inputs);
    // Each time one more of the program's handles.
    if (batched.ok() || !batcher.must_force() || !forced.insert(*batcher.must_force()).second)
      return batched;
  }
}

}  // namespace stride::ops
