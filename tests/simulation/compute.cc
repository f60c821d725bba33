#include "tests/simulation/compute.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stride::simulation {
namespace {

struct Error {
  std::string text;
};

int64_t Load(const Memory& at, const wire::Operand& operand, int64_t bytes) {
  const char* place = at(operand.arena(), operand.offset() + static_cast<uint64_t>(bytes), 8);
  if (place == nullptr) throw Error{"it reads outside its arenas"};
  int64_t value;
  std::memcpy(&value, place, 8);
  return value;
}

void Store(const Memory& at, const wire::Operand& operand, int64_t bytes, int64_t value) {
  char* place = at(operand.arena(), operand.offset() + static_cast<uint64_t>(bytes), 8);
  if (place == nullptr) throw Error{"it writes outside its arenas"};
  std::memcpy(place, &value, 8);
}

int64_t ScalarOf(const wire::ScalarValue& scalar) {
  int64_t value = 0;
  if (scalar.value().size() != 8) throw Error{"a scalar is no int64"};
  std::memcpy(&value, scalar.value().data(), 8);
  return value;
}

// In uint64, so that an overflow wraps.
int64_t Evaluate(const wire::ScalarProgram& program, const std::vector<int64_t>& inputs,
                 const google::protobuf::RepeatedPtrField<wire::ScalarValue>& scalars,
                 int64_t index) {
  std::vector<uint64_t> values;
  for (const wire::Instruction& step : program.instructions()) {
    auto argument = [&](int i) { return values.at(step.arguments(i)); };
    switch (step.kind()) {
      case wire::Instruction::KIND_INPUT:
        values.push_back(inputs.at(step.index()));
        break;
      case wire::Instruction::KIND_SCALAR:
        values.push_back(ScalarOf(scalars.at(static_cast<int>(step.index()))));
        break;
      case wire::Instruction::KIND_INDEX:
        values.push_back(index);
        break;
      case wire::Instruction::KIND_CAST:
        values.push_back(argument(0));
        break;
      case wire::Instruction::KIND_OP:
        if (step.op() == "add") {
          values.push_back(argument(0) + argument(1));
        } else if (step.op() == "multiply") {
          values.push_back(argument(0) * argument(1));
        } else {
          throw Error{absl::StrCat("it cannot do ", step.op())};
        }
        break;
      default:
        throw Error{"an unknown instruction"};
    }
  }
  return static_cast<int64_t>(values.at(program.results(0)));
}

// Calls visit(position) for every element in C order.
template <typename Extents, typename Visit>
void ForEach(const Extents& extents, Visit visit) {
  std::vector<int64_t> position(extents.size(), 0);
  for (int64_t extent : extents) {
    if (extent == 0) return;
  }
  for (;;) {
    visit(position);
    int axis = static_cast<int>(extents.size()) - 1;
    while (axis >= 0 && ++position[axis] == extents.at(axis)) position[axis--] = 0;
    if (axis < 0) return;
  }
}

int64_t Offset(const wire::Operand& operand, const std::vector<int64_t>& position, int from = 0) {
  int64_t offset = 0;
  for (size_t i = 0; i < position.size(); ++i)
    offset += position[i] * operand.strides(static_cast<int>(i) + from);
  return offset;
}

void Elementwise(const wire::ElementwiseLaunch& launch, const wire::ElementwiseCode& code,
                 Half half, const Memory& at) {
  int64_t total = 1, index = 0;
  for (int64_t extent : launch.extents()) total *= extent;
  ForEach(launch.extents(), [&](const std::vector<int64_t>& position) {
    bool now = (index < total / 2) == (half == Half::kFirst);
    if (now) {
      std::vector<int64_t> inputs;
      for (const auto& input : launch.inputs())
        inputs.push_back(Load(at, input, Offset(input, position)));
      int64_t value = Evaluate(code.program(), inputs, launch.scalars(), index);
      Store(at, launch.outputs(0), Offset(launch.outputs(0), position), value);
    }
    ++index;
  });
}

// A sum.
void Reduce(const wire::ReduceLaunch& launch, const wire::ReduceCode& code, const Memory& at) {
  ForEach(launch.kept_extents(), [&](const std::vector<int64_t>& kept) {
    uint64_t sum = 0;
    ForEach(launch.reduced_extents(), [&](const std::vector<int64_t>& reduced) {
      std::vector<int64_t> inputs;
      for (const auto& input : launch.inputs()) {
        inputs.push_back(
            Load(at, input,
                 Offset(input, kept) + Offset(input, reduced, static_cast<int>(kept.size()))));
      }
      sum += Evaluate(code.map(), inputs, launch.map_scalars(), 0);
    });
    int64_t result =
        Evaluate(code.finish(), {static_cast<int64_t>(sum)}, launch.finish_scalars(), 0);
    Store(at, launch.output(), Offset(launch.output(), kept), result);
  });
}

void CheckedCompute(const wire::Task& task, const wire::Code* code, Half half, const Memory& at) {
  switch (task.kind_case()) {
    case wire::Task::kElementwise:
      if (code == nullptr || !code->has_elementwise()) throw Error{"its module is not loaded"};
      Elementwise(task.elementwise(), code->elementwise(), half, at);
      return;
    case wire::Task::kReduce:
      if (code == nullptr || !code->has_reduce()) throw Error{"its module is not loaded"};
      if (half == Half::kSecond) Reduce(task.reduce(), code->reduce(), at);
      return;
    case wire::Task::kZeroFill: {
      const auto& fill = task.zero_fill();
      char* to = at(fill.arena(), fill.offset(), fill.size());
      if (to == nullptr) throw Error{"it clears outside its arenas"};
      std::memset(to, 0, half == Half::kFirst ? fill.size() / 2 : fill.size());
      return;
    }
    case wire::Task::kCopyBytes: {
      const auto& copy = task.copy_bytes();
      char* from = at(copy.from_arena(), copy.from_offset(), copy.size());
      char* to = at(copy.to_arena(), copy.to_offset(), copy.size());
      if (from == nullptr || to == nullptr) throw Error{"it copies outside its arenas"};
      std::memmove(to, from, half == Half::kFirst ? copy.size() / 2 : copy.size());
      return;
    }
    default:
      throw Error{"an unknown kind of task"};
  }
}

}  // namespace

std::string Compute(const wire::Task& task, const wire::Code* code, Half half, const Memory& at) {
  try {
    CheckedCompute(task, code, half, at);
  } catch (const Error& error) {
    return error.text;
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace stride::simulation
