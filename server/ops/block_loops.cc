#include "server/ops/block_loops.h"

#include <string_view>
#include <unordered_map>

namespace stride::ops {
namespace {

using Instruction = wire::Instruction;

constexpr std::string_view kPrefix = "block_";
constexpr std::string_view kCast = "cast";

std::string MakeName(std::string_view op, const std::vector<DType>& arguments) {
  std::string name(kPrefix);
  name += op;
  for (DType dtype : arguments) name.append("_").append(Name(dtype));
  return name;
}

// Stored results pass through `where` in their own type (a ufunc's mask), and so do the bits of
// floats; other operations compute in types wider than 16 bits.
bool ComputesIn(const OpRow& row, DType dtype) {
  return HasLoop(row, dtype) && (row.rule == TypeRule::kWhere || ComputeType(row, dtype) == dtype);
}

void AddOperation(const OpRow& row, DType dtype, std::vector<BlockLoop>* loops) {
  const DType result = ResultOf(row, dtype);
  switch (row.rule) {
    case TypeRule::kWhere:
      loops->push_back({&row, {DType::kBool, dtype, dtype}, result});
      break;
    case TypeRule::kLoadExponent:
      for (DType exponent : {DType::kInt32, DType::kInt64})
        loops->push_back({&row, {dtype, exponent}, result});
      break;
    default:
      loops->push_back({&row, std::vector<DType>(static_cast<size_t>(row.arity), dtype), result});
  }
}

// Comparisons of int64 with uint64 are exact.
void AddMixedComparison(const OpRow& row, std::vector<BlockLoop>* loops) {
  if (row.rule != TypeRule::kComparison) return;
  loops->push_back({&row, {DType::kInt64, DType::kUInt64}, DType::kBool});
  loops->push_back({&row, {DType::kUInt64, DType::kInt64}, DType::kBool});
}

// Functions of random.h, which clients cannot name.
void AddRandom(std::vector<BlockLoop>* loops) {
  constexpr DType kWord = DType::kUInt64;
  for (const char* name : {"random_philox_low", "random_philox_high"})
    loops->push_back({FindInstruction(name), {kWord, kWord, kWord}, kWord});
  for (const char* name : {"random_half", "random_odd"})
    loops->push_back({FindInstruction(name), {kWord}, kWord});
  for (const char* name : {"random_word", "random_threefry", "random_below"})
    loops->push_back({FindInstruction(name), {kWord, kWord}, kWord});
  const OpRow* normal = FindInstruction("random_normal");
  loops->push_back({normal, {DType::kUInt32}, DType::kFloat32});
  loops->push_back({normal, {DType::kFloat64}, DType::kFloat64});
}

std::vector<BlockLoop> MakeLoops() {
  std::vector<BlockLoop> loops;
  for (const OpRow& row : OpTable()) {
    for (int number = 1; number <= kNumDTypes; ++number) {
      const auto dtype = static_cast<DType>(number);
      if (ComputesIn(row, dtype)) AddOperation(row, dtype, &loops);
    }
    AddMixedComparison(row, &loops);
  }
  AddRandom(&loops);
  for (int from = 1; from <= kNumDTypes; ++from) {
    for (int to = 1; to <= kNumDTypes; ++to) {
      if (from == to && static_cast<DType>(to) != DType::kBool) continue;
      loops.push_back({nullptr, {static_cast<DType>(from)}, static_cast<DType>(to)});
    }
  }
  return loops;
}

bool RunsByBlocks(const wire::ScalarProgram& program, const Instruction& instruction) {
  switch (instruction.kind()) {
    case Instruction::KIND_INPUT:
    case Instruction::KIND_SCALAR:
    case Instruction::KIND_INDEX:
    case Instruction::KIND_LITERAL:
      return true;
    case Instruction::KIND_OP:
    case Instruction::KIND_CAST:
      return FindBlockLoop(BlockLoopName(program, instruction)) >= 0;
    default:
      return false;
  }
}

}  // namespace

const std::vector<BlockLoop>& BlockLoops() {
  static const auto& loops = *new std::vector<BlockLoop>(MakeLoops());
  return loops;
}

int FindBlockLoop(const std::string& name) {
  static const auto& numbers = *[] {
    auto* all = new std::unordered_map<std::string, int>;
    for (const BlockLoop& loop : BlockLoops())
      all->emplace(NameOf(loop), static_cast<int>(all->size()));
    return all;
  }();
  auto found = numbers.find(name);
  return found == numbers.end() ? -1 : found->second;
}

std::string NameOf(const BlockLoop& loop) {
  if (loop.row != nullptr) return MakeName(loop.row->name, loop.arguments);
  return MakeName(kCast, {loop.arguments[0], loop.result});
}

std::string BlockLoopName(const wire::ScalarProgram& program, const Instruction& instruction) {
  std::vector<DType> types;
  for (uint32_t argument : instruction.arguments()) {
    if (argument >= static_cast<uint32_t>(program.instructions_size())) return "";
    types.push_back(static_cast<DType>(program.instructions(static_cast<int>(argument)).dtype()));
  }
  if (instruction.kind() == Instruction::KIND_OP) return MakeName(instruction.op(), types);
  types.push_back(static_cast<DType>(instruction.dtype()));
  return MakeName(kCast, types);
}

bool RunsByBlocks(const wire::ScalarProgram& program) {
  for (const Instruction& instruction : program.instructions()) {
    if (!RunsByBlocks(program, instruction)) return false;
  }
  return true;
}

int64_t BlockLaunchBytes(const wire::ScalarProgram& program, int64_t num_operands, int64_t rank) {
  constexpr int64_t kHead = 48, kAlignment = 16, kOperand = 16, kWord = 8, kStep = 16;
  // Each instruction is a step or a constant; a result is a store, after a normalization for bool.
  const int64_t steps = program.instructions_size() + 2 * program.results_size();
  return kHead + 4 * kAlignment + kWord * rank + num_operands * (kOperand + kWord * rank) +
         kStep * steps;
}

}  // namespace stride::ops
