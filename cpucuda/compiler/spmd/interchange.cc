#include "cpucuda/compiler/spmd/interchange.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

namespace stride::cpucuda::spmd {
namespace {

using llvm::Instruction;
using llvm::Value;

constexpr int kMaxDepth = 12;
// Neighbours' elements that lie closer than this share cache lines.
constexpr int64_t kNearBytes = 32;

// How far `value` moves from one thread to its neighbour in x. Not exact: at most that far, but for
// jumps between few neighbours, as a clamped or mirrored index has them.
struct XStep {
  int64_t step = 0;
  bool exact = true;
};

XStep AtMost(int64_t a, int64_t b) { return {std::max(std::abs(a), std::abs(b)), false}; }

// The step of a value; nullopt when no known constant bounds it.
class XSteps {
 public:
  explicit XSteps(const Shape& shape) : shape_(shape) {}

  std::optional<XStep> Of(const Value* value, int depth = 0) {
    if (!shape_.IsVarying(value)) return XStep{};
    const auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction == nullptr || depth > kMaxDepth) return std::nullopt;
    if (instruction == shape_.thread[0] || instruction == shape_.thread[3]) return XStep{1};
    if (instruction == shape_.thread[1] || instruction == shape_.thread[2]) return XStep{};
    if (llvm::isa<llvm::CastInst, llvm::FreezeInst>(instruction))
      return Of(instruction->getOperand(0), depth + 1);
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) return OfPhi(phi, depth);
    if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(instruction))
      return OfBinary(binary, depth);
    if (const auto* address = llvm::dyn_cast<llvm::GEPOperator>(instruction))
      return OfAddress(address, depth);
    if (llvm::isa<llvm::SelectInst>(instruction))
      return OfEither(instruction->getOperand(1), instruction->getOperand(2), depth);
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction))
      return OfIntrinsic(call, depth);
    return std::nullopt;
  }

 private:
  std::optional<XStep> OfEither(const Value* a, const Value* b, int depth) {
    auto first = Of(a, depth + 1), second = Of(b, depth + 1);
    if (!first || !second) return std::nullopt;
    return AtMost(first->step, second->step);
  }
  std::optional<XStep> OfIntrinsic(const llvm::IntrinsicInst* call, int depth) {
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::abs:
        return OfEither(call->getArgOperand(0), call->getArgOperand(0), depth);
      case llvm::Intrinsic::smin:
      case llvm::Intrinsic::smax:
      case llvm::Intrinsic::umin:
      case llvm::Intrinsic::umax:
        return OfEither(call->getArgOperand(0), call->getArgOperand(1), depth);
      default:
        return std::nullopt;
    }
  }
  std::optional<XStep> OfBinary(const llvm::BinaryOperator* binary, int depth) {
    auto a = Of(binary->getOperand(0), depth + 1);
    auto b = Of(binary->getOperand(1), depth + 1);
    if (!a || !b) return std::nullopt;
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(binary->getOperand(1));
    const bool exact = a->exact && b->exact;
    auto sum = [&](int64_t step) {
      return exact ? XStep{step} : XStep{std::abs(a->step) + std::abs(b->step), false};
    };
    switch (binary->getOpcode()) {
      case Instruction::Add:
        return sum(a->step + b->step);
      case Instruction::Sub:
        return sum(a->step - b->step);
      case Instruction::Or:
        if (const auto* disjoint = llvm::dyn_cast<llvm::PossiblyDisjointInst>(binary);
            disjoint != nullptr && disjoint->isDisjoint()) {
          return sum(a->step + b->step);
        }
        break;
      case Instruction::Mul:
        if (constant != nullptr && constant->getValue().isSignedIntN(32))
          return XStep{a->step * constant->getSExtValue(), exact};
        break;
      case Instruction::Shl:
        if (constant != nullptr && constant->getValue().ult(32))
          return XStep{a->step * (int64_t{1} << constant->getZExtValue()), exact};
        break;
      case Instruction::UDiv:
      case Instruction::SDiv:
      case Instruction::LShr:
      case Instruction::AShr:
      case Instruction::URem:
      case Instruction::SRem:
      case Instruction::And:
        // By a value that is equal for all threads: neighbours stay as near, except where a
        // quotient or a remainder wraps.
        if (b->exact && b->step == 0 && a->step != 0) return AtMost(a->step, 0);
        break;
      default:
        break;
    }
    if (exact && a->step == 0 && b->step == 0) return XStep{};
    return std::nullopt;
  }
  // A counter with its own start in each thread and the same step in all.
  std::optional<XStep> OfPhi(const llvm::PHINode* phi, int depth) {
    std::optional<XStep> result;
    for (const Value* incoming : phi->incoming_values()) {
      const auto* step = llvm::dyn_cast<llvm::Instruction>(incoming);
      bool own_step =
          step != nullptr && step->getNumOperands() >= 2 &&
          (llvm::isa<llvm::BinaryOperator>(step) || llvm::isa<llvm::GEPOperator>(step)) &&
          ((step->getOperand(0) == phi && !shape_.IsVarying(step->getOperand(1))) ||
           (step->getOperand(1) == phi && !shape_.IsVarying(step->getOperand(0))));
      if (own_step) continue;
      auto start = Of(incoming, depth + 1);
      if (!start || (result && (result->step != start->step || result->exact != start->exact)))
        return std::nullopt;
      result = start;
    }
    return result;
  }
  std::optional<XStep> OfAddress(const llvm::GEPOperator* address, int depth) {
    auto sum = Of(address->getPointerOperand(), depth + 1);
    if (!sum) return std::nullopt;
    const llvm::DataLayout& layout = shape_.function->getParent()->getDataLayout();
    for (auto at = llvm::gep_type_begin(address); at != llvm::gep_type_end(address); ++at) {
      auto part = Of(at.getOperand(), depth + 1);
      if (!part) return std::nullopt;
      if (part->step == 0) continue;
      const int64_t bytes =
          part->step * static_cast<int64_t>(at.getSequentialElementStride(layout).getFixedValue());
      sum = sum->exact && part->exact ? XStep{sum->step + bytes}
                                      : XStep{std::abs(sum->step) + std::abs(bytes), false};
    }
    return sum;
  }
  const Shape& shape_;
};

// The work of one round of a loop for one thread.
struct Round {
  int contiguous = 0;        // accesses of neighbouring elements by neighbours
  int near = 0;              // accesses of elements near each other
  int scattered = 0;         // accesses of elements at any distance
  int arithmetic = 0;        // in additions
  bool fixed_order = false;  // the accesses of different threads are ordered
};

// In additions: divisions and roots occupy a vector unit for as long.
int Cost(const Instruction& instruction) {
  constexpr int kLong = 8;
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
    return call->getIntrinsicID() == llvm::Intrinsic::sqrt ? kLong : 1;
  if (!llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CmpInst, llvm::SelectInst>(
          instruction))
    return 0;
  return instruction.getOpcode() == Instruction::FDiv ? kLong : 1;
}

Round RoundOf(const llvm::Loop& loop, const Shape& shape) {
  const llvm::DataLayout& layout = shape.function->getParent()->getDataLayout();
  Round round;
  for (llvm::BasicBlock* block : loop.blocks()) {
    for (Instruction& instruction : *block) {
      if (instruction.isAtomic() || instruction.hasMetadata(kSerial) ||
          (llvm::isa<llvm::CallBase>(instruction) && instruction.mayReadOrWriteMemory())) {
        round.fixed_order = true;
        return round;
      }
      if (shape.IsVarying(&instruction)) round.arithmetic += Cost(instruction);
      const Value* pointer = llvm::getLoadStorePointerOperand(&instruction);
      if (pointer == nullptr || instruction.isVolatile()) continue;
      auto step = XSteps(shape).Of(pointer);
      auto size = layout.getTypeStoreSize(llvm::getLoadStoreType(&instruction)).getFixedValue();
      if (step && step->exact && step->step == static_cast<int64_t>(size)) {
        ++round.contiguous;
      } else if (!step || std::abs(step->step) > kNearBytes) {
        ++round.scattered;
      } else if (!step->exact || step->step != 0) {
        ++round.near;
      }
    }
  }
  return round;
}

// All threads of the block that enter the loop run the same number of rounds.
bool LeavesTogether(const llvm::Loop& loop, const Shape& shape) {
  llvm::SmallVector<llvm::BasicBlock*, 4> leaving;
  loop.getExitingBlocks(leaving);
  return llvm::none_of(leaving, [&](llvm::BasicBlock* block) {
    const Instruction* branch = block->getTerminator();
    return shape.divergent_branches.contains(branch) || shape.IsVarying(branch->getOperand(0));
  });
}

}  // namespace

bool WantsInterchange(const llvm::Loop& loop, const Shape& shape) {
  // A round's arithmetic that pays for a vector's elements fetched one by one, and for the values
  // that a round hands to the next in memory.
  constexpr int kPerScattered = 24, kPerNear = 8, kPerCarried = 3;
  const Round round = RoundOf(loop, shape);
  if (round.fixed_order) return false;
  if (round.contiguous > round.near + round.scattered) return true;
  if (!LeavesTogether(loop, shape)) return false;
  int carried = 0;
  for (llvm::PHINode& phi : loop.getHeader()->phis()) carried += shape.IsVarying(&phi);
  return round.arithmetic >=
         kPerScattered * round.scattered + kPerNear * round.near + kPerCarried * (carried + 1);
}

}  // namespace stride::cpucuda::spmd
