#include "server/ops/batching.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
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
  Batcher(const v1::Program& program, const FunctionTable* functions)
      : program_(program), functions_(functions) {
    for (const auto& input : program.inputs()) Reserve(input.handle());
    for (const Operation& operation : program.operations()) {
      for (const OutputField& field : CollectOutputs(operation)) Reserve(field.output->handle());
    }
  }

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
    replaced_.push_back(operand);
  }

  absl::Status AddOperation(const Operation& given) {
    for (const OutputField& field : CollectOutputs(given)) {
      if (field.output->existing()) {
        return NotImplemented(absl::StrCat("batching of ", KindName(given), " in place"),
                              "what is written in place has no rule for a batch; make a new array");
      }
    }
    Operation operation = given;
    bool batched = false;
    for (const OperandField& field : CollectOperands(given))
      batched = batched || IsBatched(*field.operand);
    replaced_.clear();
    if (batched) {
      absl::Status status = ApplyRule(&operation);
      if (!status.ok()) return status;
      if (operation.kind_case() == Operation::KIND_NOT_SET) return absl::OkStatus();
    }
    return Finish(operation, batched);
  }

  // What was not replaced stands for itself.
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
    auto plan = PlanOperation(operation, inputs,
                              std::vector<Input>(static_cast<size_t>(operation.outputs_size())),
                              functions_);
    if (!plan.ok()) return plan.status();
    for (int j = 0; j < operation.outputs_size(); ++j) {
      const uint64_t handle = operation.outputs(j).handle();
      known_[handle] = {handle, batched, plan->outputs[j]};
      raw_[handle] = plan->outputs[j];
    }
    *result_.add_operations() = std::move(operation);
    return absl::OkStatus();
  }

  absl::Status ApplyRule(Operation* operation) {
    if (!operation->has_ufunc() && !operation->has_expression()) {
      // Of numbers only those know what to make.
      for (const v1::Operand* operand : OperandsOf(operation)) {
        if (Find(*operand) == nullptr) return NoRule(*operation);
      }
    }
    switch (operation->kind_case()) {
      case Operation::kUfunc:
      case Operation::kExpression:
        return Align(operation);
      case Operation::kCopy:
        return absl::OkStatus();
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
        if (Find(sort->input())->rank() == 0) return NoRule(*operation);
        if (!sort->has_axis()) return absl::OkStatus();
        auto axis = Shifted(sort->axis(), Find(sort->input())->rank(), "sort.axis");
        if (!axis.ok()) return axis.status();
        sort->set_axis(*axis);
        return absl::OkStatus();
      }
      case Operation::kSearch:
        return IsBatched(operation->search().sorted()) ? NoRule(*operation) : absl::OkStatus();
      case Operation::kGather: {
        auto* gather = operation->mutable_gather();
        for (const v1::Operand& index : gather->indices()) {
          if (IsBatched(index)) return NoRule(*operation);
        }
        if (gather->along_axis()) return NoRule(*operation);
        auto axis = Shifted(gather->axis(), Find(gather->input())->rank(), "gather.axis");
        if (!axis.ok()) return axis.status();
        gather->set_axis(*axis);
        return absl::OkStatus();
      }
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
      default:
        return NoRule(*operation);
    }
  }

  // An axis of one element, in the whole.
  absl::StatusOr<int32_t> Shifted(int32_t axis, size_t rank, std::string_view field) const {
    auto normal = NormalizeAxis(axis, rank, field);
    if (!normal.ok()) return normal.status();
    return static_cast<int32_t>(*normal + 1);
  }

  absl::Status OfReduction(Operation* operation) {
    auto* reduction = operation->mutable_reduction();
    const size_t rank = RankOf(operation);
    if (absl::Status status = Align(operation); !status.ok()) return status;
    std::vector<int32_t> axes(reduction->axes().begin(), reduction->axes().end());
    auto normal = NormalizeAxes(axes, rank, "reduction.axes");
    if (!normal.ok()) return normal.status();
    const bool is_index = reduction->function() == v1::Reduction::FUNCTION_ARGMIN ||
                          reduction->function() == v1::Reduction::FUNCTION_ARGMAX;
    // Numbers nothing, or elements of several axes: neither can be said by axes.
    if (rank == 0 || (normal->empty() && is_index && rank > 1)) return NoRule(*operation);
    reduction->clear_axes();
    if (normal->empty()) {
      for (size_t axis = 0; axis < rank; ++axis)
        reduction->add_axes(static_cast<int32_t>(axis + 1));
    }
    for (int axis : *normal) reduction->add_axes(axis + 1);
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

  absl::Status OfGufunc(Operation* operation) {
    std::vector<size_t> cores;
    const std::string& name = operation->gufunc().function();
    if (name == "vecdot") cores = {1, 1};
    if (name == "matvec") cores = {2, 1};
    if (name == "vecmat") cores = {1, 2};
    const ClientFunction* own = functions_ == nullptr ? nullptr : functions_->Find(name);
    if (own != nullptr && own->kind == ClientFunction::Kind::kGufunc) {
      for (size_t i = 0; i < own->num_inputs; ++i) cores.push_back(own->layout.operands[i].size());
      for (const auto& dimension : own->layout.dimensions) {
        if (dimension.optional) return NoRule(*operation);
      }
    }
    if (cores.size() != static_cast<size_t>(operation->gufunc().inputs_size()))
      return NoRule(*operation);
    size_t loop = 0;
    for (size_t i = 0; i < cores.size(); ++i) {
      const Batched* found = Find(operation->gufunc().inputs(static_cast<int>(i)));
      if (found == nullptr || found->rank() < cores[i]) return NoRule(*operation);
      loop = std::max(loop, found->rank() - cores[i]);
    }
    return AlignTo(operation, [&](size_t i) { return loop + cores[i]; });
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
  std::vector<const v1::Operand*> replaced_;  // of the operation under way
  std::optional<int64_t> size_;               // of the batch
  uint64_t next_handle_ = 1;
};

}  // namespace

absl::StatusOr<v1::Program> BatchProgram(const v1::Program& program,
                                         absl::Span<const ArrayInfo> inputs,
                                         const FunctionTable* functions) {
  return Batcher(program, functions).Run(inputs);
}

}  // namespace stride::ops
