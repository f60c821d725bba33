#include "server/worker/cpu/lower/block_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/ops/block_loops.h"
#include "server/store/dtype.h"

namespace stride::cpu {
namespace {

using Instruction = wire::Instruction;

// A few values of 8 bytes stay in a first-level cache of 32 KiB, and a call of a loop is small next
// to what it does.
constexpr int64_t kBlockElements = 1024;
constexpr size_t kLineBytes = 64;
constexpr int kNone = -1;

absl::Status Broken(const char* what) {
  return absl::InternalError(absl::StrCat("a program by blocks is broken: ", what));
}

template <typename T, bool is_load>
void MoveEach(char* operand, int64_t step, char* block, int64_t n) {
  for (int64_t i = 0; i < n; ++i, operand += step, block += sizeof(T)) {
    if (is_load) {
      std::memcpy(block, operand, sizeof(T));
    } else {
      std::memcpy(operand, block, sizeof(T));
    }
  }
}

struct Wide {
  uint64_t words[2];
};

// n elements that lie `step` bytes apart.
template <bool is_load>
void MoveRow(char* operand, int64_t step, char* block, int64_t n, int64_t item_size) {
  if (step == item_size) {
    std::memcpy(is_load ? block : operand, is_load ? operand : block,
                static_cast<size_t>(n * item_size));
    return;
  }
  switch (item_size) {
    case 1:
      return MoveEach<uint8_t, is_load>(operand, step, block, n);
    case 2:
      return MoveEach<uint16_t, is_load>(operand, step, block, n);
    case 4:
      return MoveEach<uint32_t, is_load>(operand, step, block, n);
    case 8:
      return MoveEach<uint64_t, is_load>(operand, step, block, n);
    default:
      return MoveEach<Wide, is_load>(operand, step, block, n);
  }
}

bool IsContiguous(const wire::ElementwiseLaunch& launch, const wire::Operand& operand) {
  int64_t expected = ItemSize(static_cast<DType>(operand.dtype()));
  for (int i = launch.extents_size(); i-- > 0;) {
    if (launch.extents(i) != 1 && operand.strides(i) != expected) return false;
    expected *= launch.extents(i);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const BlockProgram>> BlockProgram::Create(
    const wire::ElementwiseLaunch& launch, const LoadedModule& module) {
  std::shared_ptr<BlockProgram> program(new BlockProgram());
  if (absl::Status status = program->Build(launch, module); !status.ok()) return status;
  return program;
}

absl::Status BlockProgram::Build(const wire::ElementwiseLaunch& launch,
                                 const LoadedModule& module) {
  const wire::Program& program = launch.by_blocks();
  extents_.assign(launch.extents().begin(), launch.extents().end());
  int64_t count = 1;
  for (int64_t extent : extents_) count *= extent;
  for (const auto* operands : {&launch.inputs(), &launch.outputs()}) {
    for (const wire::Operand& operand : *operands) {
      if (!DTypeFromNumber(operand.dtype()) || operand.strides_size() != launch.extents_size())
        return Broken("an operand");
      Operand& own = operands_.emplace_back();
      own.item_size = ItemSize(static_cast<DType>(operand.dtype()));
      own.strides.assign(operand.strides().begin(), operand.strides().end());
      own.contiguous = count == 1 || IsContiguous(launch, operand);
      own.repeated = !own.contiguous && std::all_of(own.strides.begin(), own.strides.end(),
                                                    [](int64_t stride) { return stride == 0; });
    }
  }
  if (extents_.empty()) return Broken("no axis");
  if (program.results_size() != launch.outputs_size() || program.instructions_size() == 0)
    return Broken("its results");
  values_.resize(static_cast<size_t>(program.instructions_size()));
  for (int i = 0; i < program.instructions_size(); ++i) {
    if (absl::Status status = AddInstruction(launch, i, module); !status.ok()) return status;
  }
  if (absl::Status status = AddStores(launch, module); !status.ok()) return status;
  StoreInPlace(launch);
  const int64_t widest = *std::max_element(value_bytes_.begin(), value_bytes_.end());
  block_elements_ = std::min(kBlockElements, count);
  const auto bytes = static_cast<size_t>(block_elements_ * widest);
  slot_bytes_ = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  AssignSlots();
  return absl::OkStatus();
}

absl::Status BlockProgram::AddInstruction(const wire::ElementwiseLaunch& launch, int number,
                                          const LoadedModule& module) {
  const Instruction& instruction = launch.by_blocks().instructions(number);
  if (!DTypeFromNumber(instruction.dtype())) return Broken("a type");
  const auto dtype = static_cast<DType>(instruction.dtype());
  value_bytes_.push_back(ItemSize(dtype));
  Constant constant{.value = number, .item_size = ItemSize(dtype), .is_bool = IsBool(dtype)};
  switch (instruction.kind()) {
    case Instruction::KIND_INPUT: {
      const auto input = static_cast<int>(instruction.index());
      if (instruction.index() >= static_cast<uint32_t>(launch.inputs_size()) ||
          launch.inputs(input).dtype() != instruction.dtype())
        return Broken("an input");
      const Operand& operand = operands_[static_cast<size_t>(input)];
      if (operand.contiguous) {
        values_[static_cast<size_t>(number)] = {Place::kInput, input};
      } else if (operand.repeated) {
        constant.operand = input;
        constants_.push_back(std::move(constant));
      } else {
        steps_.push_back({.kind = Step::Kind::kLoad, .value = number, .operand = input});
      }
      return absl::OkStatus();
    }
    case Instruction::KIND_SCALAR: {
      const auto scalar = static_cast<int>(instruction.index());
      if (instruction.index() >= static_cast<uint32_t>(launch.scalars_size()))
        return Broken("a scalar");
      constant.bytes = launch.scalars(scalar).value();
      break;
    }
    case Instruction::KIND_LITERAL:
      constant.bytes = instruction.literal();
      break;
    case Instruction::KIND_INDEX:
      if (dtype != DType::kInt64) return Broken("the index");
      steps_.push_back({.kind = Step::Kind::kIndex, .value = number});
      return absl::OkStatus();
    case Instruction::KIND_OP:
    case Instruction::KIND_CAST: {
      absl::InlinedVector<int, 3> arguments;
      for (uint32_t argument : instruction.arguments()) {
        if (argument >= static_cast<uint32_t>(number)) return Broken("an argument comes later");
        arguments.push_back(static_cast<int>(argument));
      }
      return AddLoop(ops::BlockLoopName(launch.by_blocks(), instruction), arguments, number,
                     module);
    }
    default:
      return Broken("an instruction");
  }
  if (constant.bytes.size() < static_cast<size_t>(constant.item_size)) return Broken("a constant");
  constants_.push_back(std::move(constant));
  return absl::OkStatus();
}

absl::Status BlockProgram::AddLoop(const std::string& name, absl::Span<const int> arguments,
                                   int value, const LoadedModule& module) {
  const LoadedModule::BlockLoop loop = module.FindBlockLoop(name);
  if (loop == nullptr || arguments.empty() || arguments.size() > 3)
    return absl::InternalError(absl::StrCat("the block loops lack ", name));
  Step step{.kind = Step::Kind::kLoop, .loop = loop, .value = value};
  // The arguments that it lacks are not read.
  for (size_t i = 0; i < 3; ++i) step.arguments[i] = arguments[std::min(i, arguments.size() - 1)];
  steps_.push_back(step);
  return absl::OkStatus();
}

// After all else: an output may be an input too.
absl::Status BlockProgram::AddStores(const wire::ElementwiseLaunch& launch,
                                     const LoadedModule& module) {
  const wire::Program& program = launch.by_blocks();
  for (int j = 0; j < program.results_size(); ++j) {
    const uint32_t result = program.results(j);
    if (result >= static_cast<uint32_t>(program.instructions_size())) return Broken("a result");
    const Instruction& instruction = program.instructions(static_cast<int>(result));
    if (instruction.dtype() != launch.outputs(j).dtype()) return Broken("a result's type");
    auto value = static_cast<int>(result);
    // A bool in memory is any byte; one that is stored is 0 or 1.
    if (instruction.kind() == Instruction::KIND_INPUT &&
        static_cast<DType>(instruction.dtype()) == DType::kBool) {
      const int normalized = static_cast<int>(values_.size());
      values_.emplace_back();
      value_bytes_.push_back(1);
      absl::Status status = AddLoop("block_cast_bool_bool", {value}, normalized, module);
      if (!status.ok()) return status;
      value = normalized;
    }
    steps_.push_back(
        {.kind = Step::Kind::kStore, .value = value, .operand = launch.inputs_size() + j});
  }
  return absl::OkStatus();
}

// The last loop writes the one output itself, where its elements lie one after another.
void BlockProgram::StoreInPlace(const wire::ElementwiseLaunch& launch) {
  if (launch.outputs_size() != 1 || steps_.size() < 2) return;
  const Step& store = steps_.back();
  const Step& last = steps_[steps_.size() - 2];
  if (last.kind != Step::Kind::kLoop || last.value != store.value ||
      !operands_[static_cast<size_t>(store.operand)].contiguous)
    return;
  values_[static_cast<size_t>(store.value)] = {Place::kOutput, store.operand};
  steps_.pop_back();
}

// A slot is free again after the last step that reads its value. Constants keep theirs.
void BlockProgram::AssignSlots() {
  std::vector<size_t> last_use(values_.size(), 0);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    last_use[static_cast<size_t>(step.value)] = i;
    if (step.kind != Step::Kind::kLoop) continue;
    for (int argument : step.arguments) last_use[static_cast<size_t>(argument)] = i;
  }
  std::vector<bool> constant(values_.size(), false);
  for (const Constant& one : constants_) {
    constant[static_cast<size_t>(one.value)] = true;
    values_[static_cast<size_t>(one.value)] = {Place::kSlot, num_slots_++};
  }
  std::vector<int> free;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Value& value = values_[static_cast<size_t>(step.value)];
    if (step.kind != Step::Kind::kStore && value.place == Place::kSlot) {
      value.number = free.empty() ? num_slots_++ : free.back();
      if (!free.empty()) free.pop_back();
    }
    // The result's slot was taken before those of the arguments come free: their item sizes differ.
    absl::InlinedVector<int, 4> ended = {step.value};
    if (step.kind == Step::Kind::kLoop)
      ended.insert(ended.end(), std::begin(step.arguments), std::end(step.arguments));
    std::sort(ended.begin(), ended.end());
    ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
    for (int number : ended) {
      const auto index = static_cast<size_t>(number);
      if (last_use[index] == i && !constant[index] && values_[index].place == Place::kSlot)
        free.push_back(values_[index].number);
    }
  }
}

void BlockProgram::FillConstants(absl::Span<const uint64_t> addresses, std::byte* scratch) const {
  for (const Constant& constant : constants_) {
    char element[16];
    const char* from =
        constant.bytes.empty()
            ? reinterpret_cast<const char*>(addresses[static_cast<size_t>(constant.operand)])
            : constant.bytes.data();
    std::memcpy(element, from, static_cast<size_t>(constant.item_size));
    if (constant.is_bool) element[0] = element[0] != 0 ? 1 : 0;
    const int slot = values_[static_cast<size_t>(constant.value)].number;
    MoveRow<true>(element, 0, reinterpret_cast<char*>(scratch) + slot * slot_bytes_,
                  block_elements_, constant.item_size);
  }
}

template <bool is_load>
void BlockProgram::Move(const Operand& operand, uint64_t address, int64_t first, int64_t n,
                        std::byte* block) const {
  // The place of the first element: an index along each axis, the innermost last.
  absl::InlinedVector<int64_t, 8> index(extents_.size());
  int64_t rest = first;
  char* row = reinterpret_cast<char*>(address);
  for (size_t axis = extents_.size(); axis-- > 0;) {
    index[axis] = rest % extents_[axis];
    rest /= extents_[axis];
    row += index[axis] * operand.strides[axis];
  }
  const size_t last = extents_.size() - 1;
  auto* to = reinterpret_cast<char*>(block);
  for (;;) {
    const int64_t length = std::min(n, extents_[last] - index[last]);
    MoveRow<is_load>(row, operand.strides[last], to, length, operand.item_size);
    n -= length;
    if (n == 0) return;
    to += length * operand.item_size;
    row -= index[last] * operand.strides[last];
    index[last] = 0;
    for (size_t axis = last; axis-- > 0;) {
      row += operand.strides[axis];
      if (++index[axis] < extents_[axis]) break;
      row -= extents_[axis] * operand.strides[axis];
      index[axis] = 0;
    }
  }
}

void BlockProgram::Run(absl::Span<const uint64_t> addresses, int64_t begin, int64_t end,
                       std::byte* scratch) const {
  FillConstants(addresses, scratch);
  for (int64_t first = begin; first < end; first += block_elements_) {
    const int64_t n = std::min(block_elements_, end - first);
    const auto place = [&](int number) -> void* {
      const Value& value = values_[static_cast<size_t>(number)];
      if (value.place == Place::kSlot)
        return scratch + static_cast<size_t>(value.number) * slot_bytes_;
      const auto operand = static_cast<size_t>(value.number);
      return reinterpret_cast<char*>(addresses[operand]) + first * operands_[operand].item_size;
    };
    for (const Step& step : steps_) {
      const auto operand = static_cast<size_t>(step.operand);
      switch (step.kind) {
        case Step::Kind::kLoop:
          step.loop(place(step.arguments[0]), place(step.arguments[1]), place(step.arguments[2]),
                    place(step.value), n);
          break;
        case Step::Kind::kLoad:
          Move<true>(operands_[operand], addresses[operand], first, n,
                     static_cast<std::byte*>(place(step.value)));
          break;
        case Step::Kind::kStore:
          Move<false>(operands_[operand], addresses[operand], first, n,
                      static_cast<std::byte*>(place(step.value)));
          break;
        case Step::Kind::kIndex: {
          auto* const index = static_cast<int64_t*>(place(step.value));
          for (int64_t i = 0; i < n; ++i) index[i] = first + i;
          break;
        }
      }
    }
  }
}

}  // namespace stride::cpu
