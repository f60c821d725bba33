#include "server/worker/codegen/block_steps.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/ops/block_loops.h"
#include "server/store/dtype.h"

namespace stride::codegen {
namespace {

using Instruction = wire::Instruction;
using Place = BlockSteps::Place;
using Kind = BlockSteps::Step::Kind;

constexpr size_t kMostArguments = 3;

absl::Status Broken(const char* what) {
  return absl::InternalError(absl::StrCat("a program by blocks is broken: ", what));
}

bool IsContiguous(const wire::ElementwiseLaunch& launch, const wire::Operand& operand) {
  int64_t expected = ItemSize(static_cast<DType>(operand.dtype()));
  for (int i = launch.extents_size(); i-- > 0;) {
    if (launch.extents(i) != 1 && operand.strides(i) != expected) return false;
    expected *= launch.extents(i);
  }
  return true;
}

class Planner {
 public:
  explicit Planner(const wire::ElementwiseLaunch& launch)
      : launch_(launch), program_(launch.by_blocks()) {}

  absl::StatusOr<BlockSteps> Plan() {
    if (absl::Status status = AddOperands(); !status.ok()) return status;
    if (program_.results_size() != launch_.outputs_size() || program_.instructions_size() == 0)
      return Broken("its results");
    values_.resize(static_cast<size_t>(program_.instructions_size()));
    for (int i = 0; i < program_.instructions_size(); ++i) {
      if (absl::Status status = AddInstruction(i); !status.ok()) return status;
    }
    if (absl::Status status = AddStores(); !status.ok()) return status;
    StoreInPlace();
    AssignSlots();
    return std::move(plan_);
  }

 private:
  // A step with numbers of its values, whose places are assigned at the end.
  struct Numbered {
    Kind kind = Kind::kLoop;
    int loop = 0;
    std::vector<int> arguments;
    int value = 0;
    int operand = 0;
  };
  struct Value {
    Place place;
    int64_t bytes = 0;
  };

  absl::Status AddOperands() {
    plan_.extents.assign(launch_.extents().begin(), launch_.extents().end());
    if (plan_.extents.empty()) return Broken("no axis");
    plan_.count = 1;
    for (int64_t extent : plan_.extents) plan_.count *= extent;
    for (const auto* operands : {&launch_.inputs(), &launch_.outputs()}) {
      for (const wire::Operand& operand : *operands) {
        if (!DTypeFromNumber(operand.dtype()) || operand.strides_size() != launch_.extents_size())
          return Broken("an operand");
        BlockSteps::Operand& own = plan_.operands.emplace_back();
        own.item_size = ItemSize(static_cast<DType>(operand.dtype()));
        own.strides.assign(operand.strides().begin(), operand.strides().end());
        own.contiguous = plan_.count == 1 || IsContiguous(launch_, operand);
        own.repeated = !own.contiguous && std::all_of(own.strides.begin(), own.strides.end(),
                                                      [](int64_t stride) { return stride == 0; });
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddInstruction(int number) {
    const Instruction& instruction = program_.instructions(number);
    if (!DTypeFromNumber(instruction.dtype())) return Broken("a type");
    const auto dtype = static_cast<DType>(instruction.dtype());
    values_[static_cast<size_t>(number)].bytes = ItemSize(dtype);
    switch (instruction.kind()) {
      case Instruction::KIND_INPUT:
        return AddInput(number);
      case Instruction::KIND_SCALAR:
        if (instruction.index() >= static_cast<uint32_t>(launch_.scalars_size()))
          return Broken("a scalar");
        return AddConstant(number, launch_.scalars(static_cast<int>(instruction.index())).value());
      case Instruction::KIND_LITERAL:
        return AddConstant(number, instruction.literal());
      case Instruction::KIND_INDEX:
        if (dtype != DType::kInt64) return Broken("the index");
        steps_.push_back({.kind = Kind::kIndex, .value = number});
        return absl::OkStatus();
      case Instruction::KIND_OP:
      case Instruction::KIND_CAST: {
        std::vector<int> arguments;
        for (uint32_t argument : instruction.arguments()) {
          if (argument >= static_cast<uint32_t>(number)) return Broken("an argument comes later");
          arguments.push_back(static_cast<int>(argument));
        }
        return AddLoop(ops::BlockLoopName(program_, instruction), arguments, number);
      }
      default:
        return Broken("an instruction");
    }
  }

  absl::Status AddInput(int number) {
    const Instruction& instruction = program_.instructions(number);
    const auto input = static_cast<int>(instruction.index());
    if (instruction.index() >= static_cast<uint32_t>(launch_.inputs_size()) ||
        launch_.inputs(input).dtype() != instruction.dtype())
      return Broken("an input");
    const BlockSteps::Operand& operand = plan_.operands[static_cast<size_t>(input)];
    if (operand.contiguous || operand.repeated) {
      values_[static_cast<size_t>(number)].place = {Place::Kind::kOperand, input};
    } else {
      steps_.push_back({.kind = Kind::kLoad, .value = number, .operand = input});
    }
    return absl::OkStatus();
  }

  absl::Status AddConstant(int number, const std::string& bytes) {
    Value& value = values_[static_cast<size_t>(number)];
    const auto size = static_cast<size_t>(value.bytes);
    if (bytes.size() < size) return Broken("a constant");
    std::string own = bytes.substr(0, size);
    if (IsBool(static_cast<DType>(program_.instructions(number).dtype())))
      own[0] = own[0] != 0 ? 1 : 0;
    value.place = {Place::Kind::kConstant, static_cast<int>(plan_.constants.size())};
    plan_.constants.push_back(std::move(own));
    return absl::OkStatus();
  }

  absl::Status AddLoop(const std::string& name, absl::Span<const int> arguments, int value) {
    const int loop = ops::FindBlockLoop(name);
    if (loop < 0 || arguments.empty() || arguments.size() > kMostArguments)
      return absl::InternalError(absl::StrCat("the block loops lack ", name));
    steps_.push_back({.kind = Kind::kLoop,
                      .loop = loop,
                      .arguments = {arguments.begin(), arguments.end()},
                      .value = value});
    return absl::OkStatus();
  }

  // Stores come last, since an output may be an input too.
  absl::Status AddStores() {
    for (int j = 0; j < program_.results_size(); ++j) {
      const uint32_t result = program_.results(j);
      if (result >= static_cast<uint32_t>(program_.instructions_size())) return Broken("a result");
      const Instruction& instruction = program_.instructions(static_cast<int>(result));
      if (instruction.dtype() != launch_.outputs(j).dtype()) return Broken("a result's type");
      auto value = static_cast<int>(result);
      // A bool in memory may be any byte; a stored one is 0 or 1.
      if (instruction.kind() == Instruction::KIND_INPUT &&
          static_cast<DType>(instruction.dtype()) == DType::kBool) {
        const int normalized = static_cast<int>(values_.size());
        values_.push_back({.place = {}, .bytes = 1});
        absl::Status status = AddLoop("block_cast_bool_bool", {value}, normalized);
        if (!status.ok()) return status;
        value = normalized;
      }
      steps_.push_back(
          {.kind = Kind::kStore, .value = value, .operand = launch_.inputs_size() + j});
    }
    return absl::OkStatus();
  }

  // The last loop writes a single contiguous output directly.
  void StoreInPlace() {
    if (launch_.outputs_size() != 1 || steps_.size() < 2) return;
    const Numbered& store = steps_.back();
    const Numbered& last = steps_[steps_.size() - 2];
    if (last.kind != Kind::kLoop || last.value != store.value ||
        !plan_.operands[static_cast<size_t>(store.operand)].contiguous)
      return;
    values_[static_cast<size_t>(store.value)].place = {Place::Kind::kOperand, store.operand};
    steps_.pop_back();
  }

  bool InSlot(int value) const {
    return values_[static_cast<size_t>(value)].place.kind == Place::Kind::kSlot;
  }

  // A slot is free again after the last step that reads its value.
  void AssignSlots() {
    std::vector<size_t> last_use(values_.size(), 0);
    for (size_t i = 0; i < steps_.size(); ++i) {
      last_use[static_cast<size_t>(steps_[i].value)] = i;
      for (int argument : steps_[i].arguments) last_use[static_cast<size_t>(argument)] = i;
    }
    std::vector<int> free;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Numbered& step = steps_[i];
      Value& value = values_[static_cast<size_t>(step.value)];
      if (step.kind != Kind::kStore && InSlot(step.value)) {
        value.place.number = free.empty() ? plan_.num_slots++ : free.back();
        if (!free.empty()) free.pop_back();
        plan_.slot_item = std::max(plan_.slot_item, value.bytes);
      }
      plan_.steps.push_back(Placed(step));
      // The result's slot is assigned before the arguments' slots become free, since their item
      // sizes differ.
      absl::InlinedVector<int, kMostArguments + 1> ended(step.arguments.begin(),
                                                         step.arguments.end());
      ended.push_back(step.value);
      std::sort(ended.begin(), ended.end());
      ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
      for (int number : ended) {
        if (last_use[static_cast<size_t>(number)] == i && InSlot(number))
          free.push_back(values_[static_cast<size_t>(number)].place.number);
      }
    }
  }

  BlockSteps::Step Placed(const Numbered& step) const {
    const Value& value = values_[static_cast<size_t>(step.value)];
    BlockSteps::Step placed{.kind = step.kind,
                            .loop = step.loop,
                            .arguments = {},
                            .value = value.place,
                            .value_bytes = value.bytes,
                            .operand = step.operand};
    for (int argument : step.arguments)
      placed.arguments.push_back(values_[static_cast<size_t>(argument)].place);
    return placed;
  }

  const wire::ElementwiseLaunch& launch_;
  const wire::ScalarProgram& program_;
  BlockSteps plan_;
  std::vector<Value> values_;
  std::vector<Numbered> steps_;
};

}  // namespace

absl::StatusOr<BlockSteps> PlanBlockSteps(const wire::ElementwiseLaunch& launch) {
  return Planner(launch).Plan();
}

}  // namespace stride::codegen
